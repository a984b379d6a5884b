package activation

import (
	"context"
	"testing"
	"time"

	"github.com/florete/florete/tests/kit"
)

// TestWatchEndsAndTellsNoJumpThatWasNot checks that no jump is reported unless the clock was set.
// tests/scenarios/clock.py checks that a jump is reported. Setting this machine's clock during the
// test is tolerated once.
func TestWatchEndsAndTellsNoJumpThatWasNot(t *testing.T) {
	for range 3 {
		if !told(t) {
			return
		}
	}
	t.Fatal("tells a jump each time, although nobody sets the clock")
}

// told watches for a while, and reports whether it saw a jump.
func told(t *testing.T) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	jumped := make(chan struct{}, 1)
	ended := make(chan error)
	go func() { ended <- WatchClock(ctx, jumped) }()
	if err := kit.Reads(t, "the watch to end", ended); err != nil || ctx.Err() == nil {
		t.Fatalf("ended with %v, context %v", err, ctx.Err())
	}
	return len(jumped) > 0
}
