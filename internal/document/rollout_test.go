package document

import (
	"testing"
	"time"
)

func TestWindow(t *testing.T) {
	late := MaintenanceWindow{Days: []string{"sat", "sun"}, Start: "23:30", Minutes: 60} // 2026-07-18 is a Saturday
	for at, open := range map[string]bool{
		"2026-07-18T23:29:59Z":      false,
		"2026-07-18T23:30:00Z":      true,
		"2026-07-19T00:29:59Z":      true, // of Saturday
		"2026-07-19T00:30:00Z":      false,
		"2026-07-19T23:45:00Z":      true,
		"2026-07-20T00:15:00Z":      true, // of Sunday
		"2026-07-20T23:45:00Z":      false,
		"2026-07-18T00:15:00Z":      false, // Friday has no window
		"2026-07-19T02:00:00+02:00": true,
	} {
		now, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		if late.Open(now) != open {
			t.Errorf("at %s: open is %v", at, !open)
		}
	}
	if (MaintenanceWindow{Days: weekdays, Start: "25:00", Minutes: 60}).Open(time.Now()) {
		t.Error("a window without a time of day is open")
	}
}

// TestLongest checks how long a rollout may take, with waves, maintenance windows and budgets.
func TestLongest(t *testing.T) {
	const hour, week = time.Hour, 7 * 24 * time.Hour
	all := []string{"a", "b", "c", "d", "e"}
	for name, c := range map[string]struct {
		change func(*Rollout)
		want   time.Duration
	}{
		"two waves":            {func(*Rollout) {}, hour + 2*(hour+10*time.Minute)},
		"maintenance windows":  {func(r *Rollout) { r.Maintenance = []Maintenance{{}, {}} }, hour + 2*(hour+10*time.Minute+week)},
		"a budget":             {func(r *Rollout) { r.Budgets = []Budget{{Most: 1, Hosts: all}} }, 2*hour + 2*(hour+10*time.Minute) + 1*hour + 2*hour},
		"a wide budget":        {func(r *Rollout) { r.Budgets = []Budget{{Most: 2, Hosts: all}} }, 2*hour + 2*(hour+10*time.Minute) + 1*hour/2 + 2*hour/2},
		"two budgets of hosts": {func(r *Rollout) { r.Budgets = []Budget{{Most: 1, Hosts: all}, {Most: 2, Hosts: all[2:]}} }, 2*hour + 2*(hour+10*time.Minute) + 1*hour + 3*hour},
		"a host in no wave":    {func(r *Rollout) { r.Budgets = []Budget{{Most: 1, Hosts: []string{"a", "x"}}} }, 3*hour + 2*(hour+10*time.Minute)},
	} {
		r := Rollout{Waves: [][]string{{"a", "b"}, {"c", "d", "e"}}, Healthy: 600, Within: 3600}
		c.change(&r)
		if got := r.Longest([]string{"a"}); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
