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
	// reportEvery is the interval between reports of an unchanged host, varied by a tenth.
	reportEvery = 5 * time.Minute
	// lookEvery is the interval between checks for changes.
	lookEvery = 10 * time.Second
	// reportFirst is the time for which a watch waits for the report of new documents. It is short,
	// because publications during that time, in particular revocations, are delayed.
	reportFirst = 3 * time.Second
	// reportAlone is the time for which the report of new documents waits for the connection on
	// which these are fetched and proved. After that it uses a connection of its own.
	reportAlone = 2 * time.Minute
	// listReport bounds the time that the forwarder has to load a revocation list.
	listReport = 500 * time.Millisecond
)

// reporter schedules reports.
type reporter struct {
	sequence int64
	look     time.Time // time of the next check for changes
	due      time.Time // time of the next report without changes
	busy     bool
	standing string // hostreport.Report.Standing of the last report
	failures int    // consecutive failures

	generation int // generation of the documents at the last check

	rotate map[string]int // rotations ordered in the last answer, by need
}

// reports starts a report if one may be due. It returns the time at which to call it again.
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
	// Between two watches the connection is free. A report that is due soon is then sent over it.
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

// unreported reports whether the report of new documents should come first. The report waits for a
// while for the needs, and the next watch waits for the report. One connection is then sufficient
// after new documents.
func (f *Follower) unreported(now time.Time) bool {
	r := &f.reporter
	return f.Report != nil && !f.table.Once && r.failures == 0 && r.generation != f.set.Generation && now.Before(f.opened.Add(reportFirst))
}

// connects reports whether documents are about to be fetched or proved over a connection that a
// report can use afterwards. A provider that does not answer needs no further connection.
func (f *Follower) connects() bool {
	n := f.need
	return f.prover.Commit != nil || n != nil && (n.Busy || n.State.State == hostdir.NeedBlocked || n.State.State == hostdir.NeedWaiting)
}

// send sends a report to the first provider that accepts it, over the line if there is one, and
// returns the answer.
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

// ReportSoon makes the host check at once whether its state has changed and must be reported.
func (f *Follower) ReportSoon() { f.reporter.lookIn(0) }

func (r *reporter) lookIn(wait time.Duration) { r.look = time.Now().Round(0).Add(wait) }

// Order returns the number of the secret rotation that an operator has ordered for a need, or zero.
func (f *Follower) Order(need string) int { return f.reporter.rotate[need] }

// Watching reports whether the connection to the provider of documents is in use, usually by a
// watch.
func (f *Follower) Watching() bool { return f.line.used }

// looked records that there was nothing to report.
func (f *Follower) looked() {
	f.reporter.busy = false
	f.reporter.lookIn(lookEvery)
}

// reported records the result of a report. A failure is not an event, because it is also reported
// for the need for documents, which has the same providers.
func (f *Follower) reported(standing string, answer hostapi.Reported, err error) {
	r := &f.reporter
	f.looked()
	// After the clock was set back, the number would otherwise begin below that of the provider.
	r.sequence = max(r.sequence, answer.Sequence)
	if err != nil {
		r.failures++
		r.look = r.look.Add(min(reportEvery, f.table.Backoff.Wait(r.failures, hostapi.AsError(err))))
		return
	}
	r.failures, r.standing, r.rotate = 0, standing, answer.Rotate
	r.due = time.Now().Round(0).Add(reportEvery - reportEvery/10 + rand.N(reportEvery/5))
}
