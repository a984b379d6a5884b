package wallclock

import (
	"context"
	"testing"
	"time"
)

// That a jump is told is shown where there is a clock to set: tests/scenarios/clock.py.
// Whoever sets this machine's clock meanwhile does so once.
func TestWatchEndsAndTellsNoJumpThatWasNot(t *testing.T) {
	for range 3 {
		if !told(t) {
			return
		}
	}
	t.Fatal("tells a jump each time, although nobody sets the clock")
}

// told watches for a while.
func told(t *testing.T) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	jumped := make(chan struct{}, 1)
	ended := make(chan error)
	go func() { ended <- Watch(ctx, jumped) }()
	select {
	case err := <-ended:
		if err != nil || ctx.Err() == nil {
			t.Fatalf("ended with %v, context %v", err, ctx.Err())
		}
	case <-time.After(10 * time.Second):
		t.Fatal("does not end")
	}
	return len(jumped) > 0
}
