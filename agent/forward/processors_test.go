package forward

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/florete/florete/tests/kit"
)

func TestEnough(t *testing.T) {
	for _, c := range []struct {
		used, most int
		waiting    float64
		want       int
	}{
		{1, 8, 0, 1}, {1, 8, 3.9, 1}, {1, 8, 4.1, 2}, {1, 2, 100, 2},
		{2, 8, 2.9, 1}, {2, 8, 3.1, 2}, {2, 8, 8.1, 4}, {6, 8, 100, 8},
		{8, 8, 20.9, 7}, {8, 8, 21.1, 8},
	} {
		if got := enough(c.used, c.most, c.waiting); got != c.want {
			t.Errorf("%v goroutines wait for %d of %d: %d, want %d", c.waiting, c.used, c.most, got, c.want)
		}
	}
}

// TestAdapt checks that the process uses one processor at first, all of them while many goroutines
// have work, and one again when they have none.
func TestAdapt(t *testing.T) {
	t.Setenv("GOMAXPROCS", "") // or it decides
	before, is := most, runtime.GOMAXPROCS(0)
	defer func() { most = before; runtime.GOMAXPROCS(is) }()
	most = 4
	ctx, cancel := context.WithCancel(t.Context())
	var adapting sync.WaitGroup
	adapting.Go(func() { AdaptProcessors(ctx) })
	until := func(what string, n int) {
		t.Helper()
		kit.Succeeds(t, what, func() error {
			if is := runtime.GOMAXPROCS(0); is != n {
				return fmt.Errorf("%d processors, want %d", is, n)
			}
			return nil
		})
	}
	until("at first", 1)
	busy, rest := context.WithCancel(ctx)
	var working sync.WaitGroup
	for range 100 {
		working.Go(func() {
			for busy.Err() == nil {
				for begun := time.Now(); time.Since(begun) < 100*time.Microsecond; {
				}
				runtime.Gosched()
			}
		})
	}
	until("with much to do", 4)
	rest()
	working.Wait()
	until("with nothing to do", 1)
	cancel()
	adapting.Wait()
	until("afterwards", 4)
}

// TestPinned checks that GOMAXPROCS in the environment has precedence.
func TestPinned(t *testing.T) {
	t.Setenv("GOMAXPROCS", "3")
	was := runtime.GOMAXPROCS(0)
	AdaptProcessors(t.Context()) // returns
	if n := runtime.GOMAXPROCS(0); n != was {
		t.Errorf("%d processors, want %d as before", n, was)
	}
}
