package document

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Rollout describes how the hosts of a cluster receive a new version of their documents in waves.
// It is part of the policy of the host that serves documents. Each version is rolled out by the
// Rollout that was published with it.
type Rollout struct {
	// Waves lists the hosts of each wave. A host is in at most one wave. A host in no wave, such as
	// a host whose documents come with its closure, is offered a new version at once, and no wave
	// waits for this host.
	Waves [][]string `json:"waves"`

	Healthy int `json:"healthy"` // seconds for which the hosts of a wave must be healthy before the next wave
	Within  int `json:"within"`  // seconds within which the hosts of a wave must become healthy

	Maintenance []Maintenance `json:"maintenance,omitempty"` // sorted by group
	Budgets     []Budget      `json:"budgets,omitempty"`
}

// Budget limits how many hosts with certain tags may be changed at the same time. The change of a
// host begins when new documents are offered to the host. It ends when the host reports that they
// are in force and that it is healthy.
type Budget struct {
	Tags  []string `json:"tags"`  // tags that select the hosts; each host has all of them
	Most  int      `json:"most"`  // maximum number of hosts that are changed at the same time
	Hosts []string `json:"hosts"` // names of the hosts, sorted
}

func (b Budget) String() string {
	return fmt.Sprintf("at most %d at once of hosts with tags %s", b.Most, strings.Join(b.Tags, ", "))
}

// Longest returns the maximum duration of a rollout that no operator pauses. It assumes that the
// hosts of each wave become healthy within the time Within of the rollout. The given providers are
// the hosts that receive a policy.
func (r Rollout) Longest(providers []string) time.Duration {
	first := slices.Clone(providers) // offered documents before the first wave
	for _, b := range r.Budgets {
		for _, host := range b.Hosts {
			if !slices.ContainsFunc(r.Waves, func(wave []string) bool { return slices.Contains(wave, host) }) {
				first = append(first, host)
			}
		}
	}
	total := r.stage(first)
	for _, wave := range r.Waves {
		total += r.stage(wave) + time.Duration(r.Healthy)*time.Second
		if len(r.Maintenance) > 0 {
			total += 7 * 24 * time.Hour // a window opens at least once a week, and stays open for the wave
		}
	}
	if len(r.Budgets) > 0 {
		total += r.stage(providers) // their policies at the end of the rollout
	}
	return total
}

// stage returns the maximum time until all of the given hosts are healthy, if they are offered
// documents as soon as the budgets permit.
func (r Rollout) stage(hosts []string) time.Duration {
	within, wait := time.Duration(r.Within)*time.Second, map[string]time.Duration{}
	for _, b := range r.Budgets {
		var members []string
		for _, host := range b.Hosts {
			if slices.Contains(hosts, host) {
				members = append(members, host)
			}
		}
		// A host waits while b.Most others use the budget, each of them for at most r.Within.
		for _, host := range members {
			wait[host] += time.Duration(len(members)-1) * within / time.Duration(b.Most)
		}
	}
	longest := time.Duration(0)
	for _, w := range wait {
		longest = max(longest, w)
	}
	return within + longest
}

// Maintenance limits when new documents are offered to the hosts of a group.
type Maintenance struct {
	Group  string            `json:"group"`
	Window MaintenanceWindow `json:"window"`

	// Hosts lists the hosts of the group. It does not list the hosts of subgroups that have their
	// own maintenance windows.
	Hosts []string `json:"hosts"`
}

// MaintenanceWindow is a period that begins at a time of day, in UTC, on certain days of the week.
type MaintenanceWindow struct {
	Days    []string `json:"days"`  // "mon", "tue", …
	Start   string   `json:"start"` // "02:30"
	Minutes int      `json:"minutes"`
}

// weekdays lists the names of the days in the order of time.Weekday.
var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// Open reports whether the given time is in the maintenance window. A window can extend past
// midnight.
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
