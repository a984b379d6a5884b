package commit

import (
	"testing"
	"time"

	"github.com/florete/florete/activation/documents"
)

var began = time.Unix(1_784_011_430, 0)

// While a boot lasts no jump of the wall clock changes the deadline; after it the wall clock
// decides, and never for longer than the whole timeout.
func TestLeft(t *testing.T) {
	c := clock{"a", time.Hour, began}.commit("x", 5*time.Minute)
	for name, x := range map[string]struct {
		clock
		want time.Duration
	}{
		"at once":                        {clock{"a", time.Hour, began}, 5 * time.Minute},
		"later":                          {clock{"a", time.Hour + time.Minute, began.Add(time.Minute)}, 4 * time.Minute},
		"wall clock set ahead":           {clock{"a", time.Hour + time.Minute, began.Add(48 * time.Hour)}, 4 * time.Minute},
		"wall clock set back":            {clock{"a", time.Hour + time.Minute, began.Add(-48 * time.Hour)}, 4 * time.Minute},
		"over":                           {clock{"a", time.Hour + 6*time.Minute, began}, -time.Minute},
		"after a reboot":                 {clock{"b", time.Second, began.Add(2 * time.Minute)}, 3 * time.Minute},
		"after a reboot, over":           {clock{"b", time.Second, began.Add(time.Hour)}, -55 * time.Minute},
		"after a reboot without a clock": {clock{"b", time.Second, time.Unix(0, 0)}, 5 * time.Minute},
	} {
		if got := x.left(c); got != x.want {
			t.Errorf("%s: %s left, want %s", name, got, x.want)
		}
		if again := x.rearm(c); again.Boot != x.boot || x.left(again) != x.want || again.Deadline != c.Deadline {
			t.Errorf("%s: armed again: %+v, %s left", name, again, x.left(again))
		}
	}
}

// A supervisor of another boot writes the deadline by its own clock.
func TestRearm(t *testing.T) {
	h := newHost(t)
	c := h.begin()
	now, err := readClock()
	if err != nil {
		t.Fatal(err)
	}
	if c.Boot != now.boot {
		t.Fatalf("boot %q, want %q", c.Boot, now.boot)
	}
	c.Boot, c.Ends = "before", 0
	if err := documents.Rearm(h.State, c); err != nil {
		t.Fatal(err)
	}
	if pending, err := (supervisor{layout: h.State, armed: func() {}}).step(t.Context()); !pending || err != nil {
		t.Fatal(pending, err)
	}
	p := h.pending()
	if left := now.left(*p); p.Boot != now.boot || left < longest-time.Hour || left > longest+time.Minute {
		t.Errorf("%+v, %s left", p, left)
	}
}
