package activation

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/api"
)

const (
	// reportEvery is how often a host reports where nothing changes, give or take a tenth.
	reportEvery = 5 * time.Minute
	// reportSoon is how long after a change, so that several changes are one report.
	reportSoon = 3 * time.Second
)

// reporter knows when the host reports next.
type reporter struct {
	sequence int64
	due      time.Time
	busy     bool
	last     []NeedSummary // as reported, or about to be
	changed  bool          // since the report under way began
	failures int
}

// status publishes how the needs stand, and has a change reported soon.
func (a *activation) status() {
	s := a.summary()
	a.Status(s)
	if a.HostReport == nil || slices.EqualFunc(a.reporter.last, s.Needs, sameStanding) {
		return
	}
	a.reporter.last, a.reporter.changed = s.Needs, true
	if soon := time.Now().Add(reportSoon); soon.Before(a.reporter.due) {
		a.reporter.due = soon
	}
}

// sameStanding is whether a need stands as it did: attempts alone are no news.
func sameStanding(a, b NeedSummary) bool {
	code := func(n NeedSummary) string {
		if n.Error == nil {
			return ""
		}
		return n.Error.Code
	}
	return a.ID == b.ID && a.State == b.State && code(a) == code(b)
}

// reports starts a report that is due, and returns when the next one is.
func (a *activation) reports(now time.Time, start func(func(context.Context) outcome)) time.Time {
	r := &a.reporter
	to := a.reportTo()
	if a.HostReport == nil || a.Once || r.busy || len(to) == 0 {
		return now.Add(maxSleep)
	}
	if r.due.After(now) {
		return r.due
	}
	r.busy, r.changed, r.sequence = true, false, max(r.sequence+1, now.UnixMilli())
	sequence := r.sequence
	start(func(ctx context.Context) outcome {
		report := a.HostReport(ctx)
		report.Sequence = sequence
		highest, err := a.send(ctx, report, to)
		return outcome{nil, func() { a.reported(highest, err) }}
	})
	return now.Add(maxSleep)
}

// reportTo are the providers of this host's documents, in order of preference.
func (a *activation) reportTo() []string {
	for _, n := range a.set.Manifest.Needs {
		if n.Kind == florete.KindConfig {
			return n.Providers
		}
	}
	return nil
}

// send sends a report to the first provider that takes it, and returns the highest sequence
// that this has of the host.
func (a *activation) send(ctx context.Context, r florete.HostReport, to []string) (highest int64, err error) {
	b, err := json.Marshal(r)
	if err != nil {
		return 0, err
	}
	for _, provider := range to {
		var e *api.Error
		if highest, e = a.host.Report(ctx, provider, b); e == nil {
			return highest, nil
		}
		err = e
	}
	return 0, err
}

// reported notes what came of a report. A failure is no event: the need for documents,
// which has the same providers, reports those.
func (a *activation) reported(highest int64, err error) {
	r := &a.reporter
	r.busy = false
	wait := reportEvery
	if r.failures++; err == nil {
		r.failures = 0
	} else {
		wait = min(wait, a.Backoff.Wait(r.failures, api.AsError(err)))
	}
	if r.changed {
		wait = min(wait, reportSoon)
	}
	// A clock that was set back would otherwise begin below what the provider has.
	r.sequence = max(r.sequence, highest)
	jitter := time.Duration(rand.Int64N(int64(wait)/5 + 1))
	r.due = time.Now().Round(0).Add(wait - wait/10 + jitter)
}
