package needstate

import (
	"math"
	"testing"
	"time"

	"github.com/florete/florete/internal/hostapi"
)

func TestFullJitter(t *testing.T) {
	transient := hostapi.Errorf(hostapi.CodeUnavailable, "")
	for _, c := range []struct {
		b       Backoff
		attempt int
		limit   time.Duration
	}{
		{Backoff{}, 1, time.Second},
		{Backoff{}, 2, 2 * time.Second},
		{Backoff{}, 9, 256 * time.Second},
		{Backoff{}, 10, 5 * time.Minute},
		{Backoff{}, math.MaxInt, 5 * time.Minute},
		{Backoff{Initial: 200 * time.Millisecond, Max: 2 * time.Second}, 4, 1600 * time.Millisecond},
		{Backoff{Initial: 200 * time.Millisecond, Max: 2 * time.Second}, 5, 2 * time.Second},
		{Backoff{Initial: time.Hour, Max: time.Second}, 1, time.Second},
		{Backoff{}, 0, time.Second},
		{Backoff{}, -5, time.Second},
	} {
		var least, most, sum time.Duration = math.MaxInt64, 0, 0
		const n = 2000
		for range n {
			w := c.b.Wait(c.attempt, transient)
			least, most, sum = min(least, w), max(most, w), sum+w
		}
		if most > c.limit || most < c.limit*98/100 || least > c.limit/50 || (sum/n-c.limit/2).Abs() > c.limit/20 {
			t.Errorf("%+v attempt %d: waits from %s to %s, on average %s, want any up to %s", c.b, c.attempt, least, most, sum/n, c.limit)
		}
	}
}

func TestWaitsThatProvidersAskFor(t *testing.T) {
	for range 1000 {
		if w := (Backoff{}).Wait(1, hostapi.Errorf(hostapi.CodeBusy, "").After(time.Minute)); w < time.Minute || w > time.Minute+time.Second {
			t.Fatalf("busy: %s", w)
		}
		if w := (Backoff{}).Wait(1, hostapi.Errorf(hostapi.CodeNotGranted, "")); w < time.Hour || w > 64*time.Minute {
			t.Fatalf("denied: %s", w)
		}
		if w := (Backoff{}).Wait(1, hostapi.Errorf(hostapi.CodeBusy, "").After(time.Hour*1000)); w > longest {
			t.Fatalf("beyond all measure: %s", w)
		}
		// Hosts that wait for a place come back in order, however often they were turned away before.
		if w := (Backoff{}).Wait(50, hostapi.Errorf(hostapi.CodeFull, "").After(time.Minute)); w < time.Minute || w > time.Minute+time.Second {
			t.Fatalf("full: %s", w)
		}
	}
}
