package document

import (
	"slices"
	"time"
)

// Rollout is how a version of a cluster's documents reaches its hosts, wave after wave. It is
// in the policy of the host that provides documents, which keeps to the plan that comes with
// the version itself.
type Rollout struct {
	// Waves are hosts, each in one of them. What is in none, such as a host whose documents
	// come with its closure, is offered a version at once, and nobody waits for it.
	Waves [][]string `json:"waves"`

	Healthy int `json:"healthy"` // seconds that the hosts reached must be healthy before the next wave
	Within  int `json:"within"`  // seconds in which they must become so

	Maintenance []Maintenance `json:"maintenance,omitempty"` // sorted by group
}

// Maintenance is when the hosts of a group may be offered a version.
type Maintenance struct {
	Group  string            `json:"group"`
	Window MaintenanceWindow `json:"window"`

	// Hosts are those of the group without those of a group in it that has a window too.
	Hosts []string `json:"hosts"`
}

// MaintenanceWindow is open on some days of the week from a time of day on, in UTC.
type MaintenanceWindow struct {
	Days    []string `json:"days"`  // "mon", "tue", …
	Start   string   `json:"start"` // "02:30"
	Minutes int      `json:"minutes"`
}

// weekdays are the days of a MaintenanceWindow, as time.Weekday counts them.
var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// Open reports whether t is in the window, also where that began the day before.
func (w MaintenanceWindow) Open(t time.Time) bool {
	start, err := time.Parse("15:04", w.Start)
	if err != nil {
		return false
	}
	t = t.UTC()
	for _, ago := range []int{0, 1} {
		from := time.Date(t.Year(), t.Month(), t.Day()-ago, start.Hour(), start.Minute(), 0, 0, time.UTC)
		if slices.Contains(w.Days, weekdays[from.Weekday()]) && !t.Before(from) && t.Before(from.Add(time.Duration(w.Minutes)*time.Minute)) {
			return true
		}
	}
	return false
}
