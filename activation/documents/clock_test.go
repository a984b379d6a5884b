package documents

import (
	"testing"
	"time"
)

var began = time.Unix(1_784_011_430, 0)

// TestLeft checks that during a boot no jump of the wall clock changes the deadline, and that
// afterwards the wall clock decides, within the whole timeout.
func TestLeft(t *testing.T) {
	c := Clock{"a", time.Hour, began}.Change(5 * time.Minute)
	for name, x := range map[string]struct {
		Clock
		want time.Duration
	}{
		"at once":                        {Clock{"a", time.Hour, began}, 5 * time.Minute},
		"later":                          {Clock{"a", time.Hour + time.Minute, began.Add(time.Minute)}, 4 * time.Minute},
		"wall clock set ahead":           {Clock{"a", time.Hour + time.Minute, began.Add(48 * time.Hour)}, 4 * time.Minute},
		"wall clock set back":            {Clock{"a", time.Hour + time.Minute, began.Add(-48 * time.Hour)}, 4 * time.Minute},
		"over":                           {Clock{"a", time.Hour + 6*time.Minute, began}, -time.Minute},
		"after a reboot":                 {Clock{"b", time.Second, began.Add(2 * time.Minute)}, 3 * time.Minute},
		"after a reboot, over":           {Clock{"b", time.Second, began.Add(time.Hour)}, -55 * time.Minute},
		"after a reboot without a clock": {Clock{"b", time.Second, time.Unix(0, 0)}, 5 * time.Minute},
	} {
		if got := x.Left(c); got != x.want {
			t.Errorf("%s: %s left, want %s", name, got, x.want)
		}
		if again := x.Rearm(c); again.Boot != x.Boot || x.Left(again) != x.want || again.Deadline != c.Deadline {
			t.Errorf("%s: armed again: %+v, %s left", name, again, x.Left(again))
		}
	}
}

// TestExtend checks that a deadline can be extended repeatedly, but not beyond its limit.
func TestExtend(t *testing.T) {
	c := Clock{"a", time.Hour, began}.Change(time.Minute)
	for _, x := range []struct{ after, left, want time.Duration }{
		{0, 30 * time.Second, time.Minute},
		{30 * time.Second, 2 * time.Minute, 2 * time.Minute},
		{2 * time.Minute, 3 * time.Minute, 3 * time.Minute},
		{4 * time.Minute, time.Hour, 6 * time.Minute},
		{9 * time.Minute, 2 * time.Minute, time.Minute},
	} {
		now := Clock{"a", time.Hour + x.after, began.Add(x.after)}
		c, _ = now.Extend(c, x.left, 10*time.Minute)
		if got := now.Left(c); got != x.want || c.Deadline.Sub(began.Add(x.after)) != x.want {
			t.Errorf("after %s: %s left, until %s, want %s", x.after, got, c.Deadline, x.want)
		}
	}
}
