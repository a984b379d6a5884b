package handover_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/agent/forward/handover"
)

func TestCloseWaitsForTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := handover.NewTasks()
		var cut error
		g.Go(func(ctx context.Context) {
			time.Sleep(time.Second)
			cut = ctx.Err()
		})
		begin := time.Now()
		g.Close(5 * time.Second)
		if d := time.Since(begin); d != time.Second || cut != nil {
			t.Errorf("closed after %s, task saw %v", d, cut)
		}
	})
}

func TestCloseEndsTasksAfterTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := handover.NewTasks()
		g.Go(func(ctx context.Context) { <-ctx.Done() })
		begin := time.Now()
		g.Close(5 * time.Second)
		if d := time.Since(begin); d != 5*time.Second {
			t.Errorf("closed after %s", d)
		}
		if g.Go(func(context.Context) { t.Error("ran") }) {
			t.Error("a task started after Close")
		}
	})
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := handover.NewTasks()
		g.Wait(t.Context())
		for n := range 3 {
			g.Go(func(context.Context) { time.Sleep(time.Duration(n) * time.Second) })
		}
		begin := time.Now()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		g.Wait(short)
		if d := time.Since(begin); d != time.Second {
			t.Errorf("waited %s, want the context's second", d)
		}
		g.Wait(t.Context())
		if d := time.Since(begin); d != 2*time.Second {
			t.Errorf("waited %s, want those of the last task", d)
		}
		if !g.Go(func(context.Context) {}) {
			t.Error("no task after Wait")
		}
		g.Close(0)
	})
}
