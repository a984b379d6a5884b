package transport

import (
	"testing"
	"time"
)

// TestRelayChoice checks on which path through relays new streams go.
func TestRelayChoice(t *testing.T) {
	path := func(took time.Duration, by ...string) *endpoint {
		return &endpoint{via: &Via{Relays: by}, shaken: took}
	}
	const ms = time.Millisecond
	now := time.Now()
	for _, test := range []struct {
		name   string
		a, b   *endpoint
		after  time.Duration // from the first choice, which is a
		silent bool          // whether a is avoided
		want   string
	}{
		{"a little worse", path(50*ms, "a"), path(41*ms, "b"), time.Hour, false, "by a"},
		{"a fifth of much", path(200*ms, "a"), path(170*ms, "b"), time.Hour, false, "by a"},
		{"much worse for a moment", path(200*ms, "a"), path(100*ms, "b"), better - 1, false, "by a"},
		{"much worse for long", path(200*ms, "a"), path(100*ms, "b"), better, false, "by b"},
		{"a further relay", path(12*ms, "a", "c"), path(11*ms, "b"), better, false, "by b"},
		{"silent", path(ms, "a"), path(200*ms, "b"), 0, true, "by b"},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := &relayChoice{chosen: test.a}
			first := func(now time.Time, all ...*endpoint) string {
				return x.choose(all, now, near, func(int) int { return 0 })[0].via.String()
			}
			if got := first(now, test.a, test.b); got == test.b.via.String() {
				t.Fatalf("new streams go %s at once", got)
			}
			all := []*endpoint{test.a, test.b}
			if test.silent {
				all = all[1:]
			}
			if got := first(now.Add(test.after), all...); got != test.want {
				t.Errorf("new streams go %s, want %s", got, test.want)
			}
		})
	}
	t.Run("better and worse by turns", func(t *testing.T) {
		a, b := path(200*ms, "a"), path(100*ms, "b")
		x := &relayChoice{chosen: a}
		for i := range 100 {
			b.shaken = []time.Duration{100 * ms, 190 * ms}[i%2]
			if got := x.choose([]*endpoint{a, b}, now.Add(time.Duration(i)*better/2), near, nil)[0]; got != a {
				t.Fatalf("new streams change to another path at turn %d", i)
			}
		}
	})
	t.Run("equally good", func(t *testing.T) {
		var asked int
		all := []*endpoint{path(0, "a"), path(near, "b"), path(5*near, "c")}
		got := (&relayChoice{}).choose(all, now, near, func(n int) int { asked = n; return n - 1 })
		if asked != 2 || got[0] != all[1] {
			t.Errorf("drawn among %d, and %s is first, want 2 and by b", asked, got[0].via)
		}
	})
}
