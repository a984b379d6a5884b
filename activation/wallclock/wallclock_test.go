package wallclock

import (
	"context"
	"testing"
	"time"
)

// That a jump is told is shown where there is a clock to set: tests/scenarios/clock.py.
func TestWatchEndsAndTellsNoJumpThatWasNot(t *testing.T) {
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
	if len(jumped) > 0 {
		t.Fatal("tells a jump, although nobody has set the clock")
	}
}
