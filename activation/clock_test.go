package activation

import (
	"testing"
	"time"

	"github.com/florete/florete/activation/distribution"
)

// TestSetBack checks that waits are not prolonged when a clock that was ahead is corrected, and
// that they do not change when a clock is set ahead or a machine slept.
func TestSetBack(t *testing.T) {
	from := time.Unix(1_800_000_000, 0)
	for name, c := range map[string]struct{ went, passed, want time.Duration }{
		"goes on":     {time.Minute, time.Minute, 0},
		"is adjusted": {time.Minute - 100*time.Millisecond, time.Minute, 0},
		"set back":    {time.Minute - 2*time.Hour, time.Minute, 2 * time.Hour},
		"set ahead":   {2 * time.Hour, time.Minute, 0},
		"slept":       {8 * time.Hour, time.Second, 0},
	} {
		if got := setBack(from, from.Add(c.went), c.passed); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	ahead := from.Add(2 * time.Hour)
	a := &activation{documents: new(distribution.Follower), needs: []*need{{nextNotify: ahead}, {}}}
	a.rewind(2 * time.Hour)
	if !a.needs[0].nextNotify.Equal(from) {
		t.Errorf("%s, want %s", a.needs[0].nextNotify, from)
	}
	if !a.needs[1].nextNotify.IsZero() {
		t.Error("what is not due at any time has become so")
	}
}
