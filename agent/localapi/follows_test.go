package localapi

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestFollowsGiveWay checks that one caller cannot occupy all places for following journals. Other
// callers wait for a minute at most.
func TestFollowsGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &follows{}
		var all []context.Context
		var ends []func()
		for range maxJournals {
			ctx, done, ok := f.begin(t.Context())
			if !ok {
				t.Fatal("no place")
			}
			all, ends = append(all, ctx), append(ends, done)
			time.Sleep(time.Second)
		}
		if _, _, ok := f.begin(t.Context()); ok {
			t.Error("a place that all have")
		}
		time.Sleep(minFollow)
		ctx, done, ok := f.begin(t.Context())
		if !ok || all[0].Err() == nil || all[1].Err() != nil {
			t.Errorf("%v: the oldest: %v, the next: %v", ok, all[0].Err(), all[1].Err())
		}
		for _, end := range ends {
			end()
		}
		if len(f.running) != 1 || ctx.Err() != nil {
			t.Errorf("%d are followed, %v", len(f.running), ctx.Err())
		}
		done()
		if len(f.running) != 0 {
			t.Errorf("%d are followed", len(f.running))
		}
	})
}
