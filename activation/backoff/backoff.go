// Package backoff says when a need is asked for again, and keeps that on disk so
// that a restart does not forget it.
package backoff

import (
	"math/rand/v2"
	"time"

	"florete/providers/api"
)

// Backoff is exponential with full jitter: before attempt n+1 any wait up to
// Initial·2^(n-1), but never over Max, is as likely as any other. So hosts that
// failed together do not come back together.
type Backoff struct {
	Initial time.Duration // zero for 1 second
	Max     time.Duration // zero for 5 minutes
}

// Slow is the shortest wait after a denial.
const Slow = time.Hour

// longest is over any wait this package makes: Retry-After is at most an hour.
const longest = 2 * Slow

// Wait is the time from the failure of an attempt, counted from 1, to the next
// one. What the provider asks for in RetryAfter comes before the jitter.
func (b Backoff) Wait(attempt int, e *api.Error) time.Duration {
	if e.Kind == api.Denied {
		return max(Slow, after(e)) + rand.N(Slow/20)
	}
	return min(after(e)+rand.N(b.limit(attempt)+1), longest)
}

func after(e *api.Error) time.Duration { return time.Duration(e.RetryAfter) * time.Second }

// limit is the longest jitter of an attempt.
func (b Backoff) limit(attempt int) time.Duration {
	limit, most := b.Initial, b.Max
	if limit <= 0 {
		limit = time.Second
	}
	if most <= 0 {
		most = 5 * time.Minute
	}
	for range attempt - 1 {
		if limit >= most {
			break
		}
		limit *= 2
	}
	return min(limit, most)
}
