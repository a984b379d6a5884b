package distribution

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"time"

	"github.com/florete/florete/activation/fetch"
	"github.com/florete/florete/activation/needstate"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/hostreport"
)

const (
	// reportEvery is how often a host reports where nothing changes, give or take a tenth.
	reportEvery = 5 * time.Minute
	// lookEvery is how often it looks whether something has.
	lookEvery = 10 * time.Second
	// reportFirst is how long a watch waits for the report of new documents. Nothing that is
	// published meanwhile, a revocation least of all, may wait longer.
	reportFirst = 3 * time.Second
	// reportAlone is how long the report of new documents waits for the connection that these
	// come and are proved over, before it has one of its own.
	reportAlone = 2 * time.Minute
	// listReport bounds the time in which the forwarder puts a revocation list in force.
	listReport = 500 * time.Millisecond
)

// reporter knows when the host reports next.
type reporter struct {
	sequence int64
	look     time.Time // when to compare what the host is with what it reported
	due      time.Time // when to report all the same
	busy     bool
	standing string // as reported last
	failures int    // in a row

	generation int // of the documents at the last look

	rotate map[string]int // what an operator ordered, by need, in the last answer
}

// reports starts a report where one may be due, and returns when to come back.
func (f *Follower) reports(now time.Time, start needstate.Start) time.Time {
	r := &f.reporter
	if f.Report == nil || f.table.Once || r.busy || f.need == nil {
		return time.Time{}
	}
	to := f.need.Providers
	fresh := f.unreported(now)
	if fresh && (f.prover.Commit != nil || f.table.Waits()) {
		return f.opened.Add(reportFirst)
	}
	// Between two watches their connection is free, and a report that is due soon needs no other.
	between := !f.line.used && f.line.free.Free(now) && r.failures == 0
	early := between && f.watcher.answered && !r.due.After(now.Add(2*reportEvery/5))
	if r.look.After(now) && !early && !fresh {
		return r.look
	}
	if alone := f.opened.Add(reportAlone); !between && r.failures == 0 && r.generation != f.set.Generation && f.connects() && now.Before(alone) {
		return alone
	}
	r.busy = true
	generation := f.set.Generation
	last, due, sequence := r.standing, early || !r.due.After(now), max(r.sequence+1, now.UnixMilli())
	host := f.table.Host
	var line *fetch.Line
	if between {
		line, _ = f.line.take()
	}
	start(func(ctx context.Context) func() {
		report := f.Report(ctx)
		is := report.Standing()
		release := func() {
			r.generation = generation
			if between {
				f.line.release(line, nil)
			}
		}
		if is == last && !due {
			return func() { release(); f.looked() }
		}
		report.Sequence = sequence
		answer, err := send(ctx, host, report, to, line)
		answer.Sequence = max(sequence, answer.Sequence)
		return func() { release(); f.reported(is, answer, err) }
	})
	return time.Time{}
}

// unreported reports whether a report of the documents in force comes first: it waits for a
// while for what the needs come to, and the next watch for the report. So one connection does
// for all that new documents bring about.
func (f *Follower) unreported(now time.Time) bool {
	r := &f.reporter
	return f.Report != nil && !f.table.Once && r.failures == 0 && r.generation != f.set.Generation && now.Before(f.opened.Add(reportFirst))
}

// connects reports whether documents are about to come, or to be proved, over a connection that
// a report can have next. A provider that did not answer yet has no need of another connection.
func (f *Follower) connects() bool {
	n := f.need
	return f.prover.Commit != nil || n != nil && (n.Busy || n.State.State == hostdir.NeedBlocked || n.State.State == hostdir.NeedWaiting)
}

// send sends a report to the first provider that takes it, over the line where there is one,
// and returns its answer.
func send(ctx context.Context, host *fetch.Host, r hostreport.Report, to []string, line *fetch.Line) (answer hostapi.Reported, err error) {
	b, err := json.Marshal(r)
	if err != nil {
		return answer, err
	}
	if line != nil {
		if answer, err = line.Report(ctx, b); err == nil {
			return answer, nil
		}
	}
	for _, provider := range to {
		line, failed := host.Line(nil, provider, false)
		if failed != nil {
			err = failed.Error
			continue
		}
		answer, err = line.Report(ctx, b)
		line.Close()
		if err == nil {
			return answer, nil
		}
	}
	return answer, err
}

// ReportSoon has the host look at once whether it has something to report.
func (f *Follower) ReportSoon() { f.reporter.lookIn(0) }

func (r *reporter) lookIn(wait time.Duration) { r.look = time.Now().Round(0).Add(wait) }

// Order returns the rotation of a need that an operator ordered; zero for none.
func (f *Follower) Order(need string) int { return f.reporter.rotate[need] }

// Watching reports whether a watch is under way, or another use of its connection.
func (f *Follower) Watching() bool { return f.line.used }

// looked notes that there was nothing to report.
func (f *Follower) looked() {
	f.reporter.busy = false
	f.reporter.lookIn(lookEvery)
}

// reported notes what came of a report. A failure is no event: the need for documents,
// which has the same providers, reports those.
func (f *Follower) reported(standing string, answer hostapi.Reported, err error) {
	r := &f.reporter
	f.looked()
	// A clock that was set back would otherwise begin below what the provider has.
	r.sequence = max(r.sequence, answer.Sequence)
	if err != nil {
		r.failures++
		r.look = r.look.Add(min(reportEvery, f.table.Backoff.Wait(r.failures, hostapi.AsError(err))))
		return
	}
	r.failures, r.standing, r.rotate = 0, standing, answer.Rotate
	r.due = time.Now().Round(0).Add(reportEvery - reportEvery/10 + rand.N(reportEvery/5))
}
