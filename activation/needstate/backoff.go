package needstate

import (
	"cmp"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/florete/florete/internal/hostapi"
)

// Backoff is exponential backoff with full jitter, so that hosts that failed together do not return
// together. The wait before attempt n+1 is uniformly distributed up to Initial·2^(n-1), limited by
// Max.
type Backoff struct {
	Initial time.Duration // zero means 1 second
	Max     time.Duration // zero means LongestWait
}

// LongestWait is the default of Backoff.Max.
const LongestWait = 5 * time.Minute

// Slow is the minimum wait before another attempt after a provider has denied a request.
const Slow = time.Hour

// longest exceeds every wait that this package makes. Retry-After is at most an hour.
const longest = 2 * Slow

// Wait returns how long to wait after a failed attempt, of which the first has number 1. The jitter
// is added to the provider's RetryAfter. A provider that is full spreads hosts by itself, in the
// order of their arrival, so the jitter is then that of a first attempt.
func (b Backoff) Wait(attempt int, e *hostapi.Error) time.Duration {
	switch {
	case e.Kind == hostapi.Denied:
		return max(Slow, after(e)) + rand.N(Slow/20)
	case e.Code == hostapi.CodeFull.Name:
		attempt = 1
	}
	return min(after(e)+b.jitter(attempt), longest)
}

// wait is like Wait, but treats a denial by this host itself, where no provider received the
// request, as transient. It costs nobody else anything, and its cause may pass.
func (b Backoff) wait(attempt int, e *hostapi.Error, provider string) time.Duration {
	if provider == "" {
		return b.jitter(attempt)
	}
	return b.Wait(attempt, e)
}

func after(e *hostapi.Error) time.Duration { return time.Duration(e.RetryAfter) * time.Second }

// settled is a number of attempts after which every sequence of waits has reached its limit.
const settled = 64

// jitter returns the wait after an attempt. An interval around half of the limit, randomized
// completely, is full jitter.
func (b Backoff) jitter(attempt int) (wait time.Duration) {
	limit := cmp.Or(b.Max, LongestWait)
	waits := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(min(cmp.Or(b.Initial, time.Second), limit)/2),
		backoff.WithMaxInterval(limit/2),
		backoff.WithMultiplier(2),
		backoff.WithRandomizationFactor(1),
		backoff.WithMaxElapsedTime(0),
	)
	for range min(max(attempt, 1), settled) {
		wait = waits.NextBackOff()
	}
	return wait
}
