package needstate

import (
	"cmp"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/florete/florete/internal/hostapi"
)

// Backoff is exponential with full jitter: before attempt n+1 any wait up to
// Initial·2^(n-1), but never over Max, is as likely as any other. So hosts that
// failed together do not come back together.
type Backoff struct {
	Initial time.Duration // zero for 1 second
	Max     time.Duration // zero for LongestWait
}

// LongestWait is the longest jitter.
const LongestWait = 5 * time.Minute

// Slow is the shortest wait after a provider's denial.
const Slow = time.Hour

// longest is over any wait this package makes: Retry-After is at most an hour.
const longest = 2 * Slow

// Wait is the time from the failure of an attempt, counted from 1, to the next
// one. The provider's RetryAfter comes before the jitter. A provider that is full spreads hosts
// itself, in the order in which they came, so the jitter is that of a first attempt.
func (b Backoff) Wait(attempt int, e *hostapi.Error) time.Duration {
	switch {
	case e.Kind == hostapi.Denied:
		return max(Slow, after(e)) + rand.N(Slow/20)
	case e.Code == hostapi.CodeFull.Name:
		attempt = 1
	}
	return min(after(e)+b.jitter(attempt), longest)
}

// wait is Wait, but that of a transient error where no provider received the request: this host
// denied it, which costs nobody else anything, and the cause may pass.
func (b Backoff) wait(attempt int, e *hostapi.Error, provider string) time.Duration {
	if provider == "" {
		return b.jitter(attempt)
	}
	return b.Wait(attempt, e)
}

func after(e *hostapi.Error) time.Duration { return time.Duration(e.RetryAfter) * time.Second }

// settled is an attempt by which every sequence of waits has reached its cap.
const settled = 64

// jitter is the wait after an attempt. Around half of its limit and randomized by
// all of it, an interval is full jitter.
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
