package needstate

import (
	"cmp"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/florete/florete/internal/hostapi"
)

// Backoff computes the waits between failed attempts, as an exponential backoff with full jitter.
// The wait before attempt n+1 is uniformly distributed between zero and Initial·2^(n-1), but at
// most Max. The jitter spreads the attempts of hosts that failed at the same time.
type Backoff struct {
	Initial time.Duration // zero means 1 second
	Max     time.Duration // zero means LongestWait
}

// LongestWait is the default of Backoff.Max.
const LongestWait = 5 * time.Minute

// Slow is the minimum wait before the next attempt after a provider has denied a request.
const Slow = time.Hour

// longest is longer than any wait that this package chooses. It assumes that RetryAfter is at most
// an hour.
const longest = 2 * Slow

// Wait returns how long to wait after the attempt with the given number, which is 1 for the first.
// The wait is the provider's RetryAfter plus the jitter. After a denied request it is at least
// Slow. If the provider is full, the jitter does not grow with the attempts, because such a
// provider already spreads the hosts by their RetryAfter.
func (b Backoff) Wait(attempt int, e *hostapi.Error) time.Duration {
	switch {
	case e.Kind == hostapi.Denied:
		return max(Slow, after(e)) + rand.N(Slow/20)
	case e.Code == hostapi.CodeFull.Name:
		attempt = 1
	}
	return min(after(e)+b.jitter(attempt), longest)
}

// wait is like Wait, but treats a request that this host itself denied as a transient failure. No
// provider received the request, so an early retry burdens no one, and the cause may have gone.
func (b Backoff) wait(attempt int, e *hostapi.Error, provider string) time.Duration {
	if provider == "" {
		return b.jitter(attempt)
	}
	return b.Wait(attempt, e)
}

func after(e *hostapi.Error) time.Duration { return time.Duration(e.RetryAfter) * time.Second }

// settled is the number of attempts after which the wait no longer grows, whatever the limits are.
const settled = 64

// jitter returns a random wait after the given attempt. The library chooses a random value around
// an interval. With half of the limit as the interval, and a randomization factor of 1, the result
// is full jitter.
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
