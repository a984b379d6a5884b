package distribution

import (
	"testing"
	"time"
)

// TestRewind checks that waits are not prolonged when a clock that was ahead is corrected.
func TestRewind(t *testing.T) {
	from := time.Unix(1_800_000_000, 0)
	f := new(Follower)
	times := []*time.Time{&f.reporter.look, &f.reporter.due, &f.watcher.next, &f.prover.next, &f.prover.seen, &f.opened}
	for _, at := range times {
		*at = from.Add(2 * time.Hour)
	}
	f.Rewind(2 * time.Hour)
	for i, at := range times {
		if !at.Equal(from) {
			t.Errorf("time %d: %s, want %s", i, at, from)
		}
	}
	if !f.prover.ends.IsZero() {
		t.Error("what is not due at any time has become so")
	}
}
