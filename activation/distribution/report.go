package distribution

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/florete/florete/activation/fetch"
	"github.com/florete/florete/activation/needstate"
	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/recording"
)

const (
	// reportEvery is the interval between two reports of a host whose state does not change. The
	// interval varies by a tenth.
	reportEvery = 5 * time.Minute
	// lookEvery is the interval at which the host checks whether its state has changed.
	lookEvery = 10 * time.Second
	// reportFirst is the time by which the next watch is postponed after new documents, so that
	// their report can be sent first over the same connection. It is short, because the host does
	// not learn of newer documents and revocations in the meantime.
	reportFirst = 3 * time.Second
	// reportAlone is the time that the report of new documents waits for the connection over which these
	// documents are fetched and proved. After that the report uses a connection of its own.
	reportAlone = 2 * time.Minute
	// listReport is the time that the forwarder has to load a new revocation list before the host
	// sends a report about it.
	listReport = 500 * time.Millisecond
)

// reporter determines when reports are sent.
type reporter struct {
	sequence int64
	look     time.Time // time of the next check for changes
	due      time.Time // time of the next report if nothing changes
	busy     bool
	standing string // hostreport.Report.Standing of the last report
	failures int    // number of consecutive failed reports

	generation int // generation of the documents at the last check

	rotate map[string]int // number of the rotation ordered in the last answer, by need
}

// reports sends a report if the state of the host has changed, or if the last report is too old. It
// returns the time at which it must be called again.
func (f *Follower) reports(now time.Time, start needstate.Start) time.Time {
	r := &f.reporter
	if f.Report == nil || f.table.Once || r.busy || f.need == nil {
		return time.Time{}
	}
	to := f.need.Providers
	fresh := f.unreported(now)
	if fresh && (f.prover.Change != nil || f.table.Waits()) {
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
		if err == nil && answer.Sequence == sequence { // otherwise the provider has a newer one
			confirm(host.Layout, report.Recordings)
		}
		answer.Sequence = max(sequence, answer.Sequence)
		return func() { release(); f.reported(is, answer, err) }
	})
	return time.Time{}
}

// unreported reports whether the next watch should wait for the report of new documents. The report
// itself waits for a while until the needs are fulfilled. In this way, one connection is enough
// after new documents.
func (f *Follower) unreported(now time.Time) bool {
	r := &f.reporter
	return f.Report != nil && !f.table.Once && r.failures == 0 && r.generation != f.set.Generation && now.Before(f.opened.Add(reportFirst))
}

// connects reports whether a poll or a proof is about to open a connection that a report can use
// afterwards. A poll that failed and will be repeated counts too, because a provider that does not
// answer would not answer a report on another connection either.
func (f *Follower) connects() bool {
	n := f.need
	return f.prover.Change != nil || n != nil && (n.Busy || n.State.State == hostdir.NeedBlocked || n.State.State == hostdir.NeedWaiting)
}

// send sends a report to the given providers, one after the other, until one accepts it. It uses
// the given line if that is not nil. It returns the provider's answer.
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

// confirm records that a provider has the summaries of recordings in its audit log. If that fails,
// they are reported again.
func confirm(l hostdir.Layout, recordings []recording.Summary) {
	if len(recordings) == 0 {
		return
	}
	last := fmt.Appendln(nil, recordings[len(recordings)-1].Number)
	if err := atomicfile.File(l.ConfirmedRecordingsFile(), last, 0o644); err != nil {
		slog.Error("reported recordings will be reported again", "err", err)
	}
}

// ReportSoon makes the next call of Begin check whether the state of the host has changed. If so, a
// report is sent at once.
func (f *Follower) ReportSoon() { f.reporter.lookIn(0) }

func (r *reporter) lookIn(wait time.Duration) { r.look = time.Now().Round(0).Add(wait) }

// Order returns the number of the secret rotation that an operator has ordered for the need with
// the given ID. It returns zero if no rotation was ordered.
func (f *Follower) Order(need string) int { return f.reporter.rotate[need] }

// Watching reports whether the long-lived connection to the provider of this host's documents is in
// use. Usually, it is used by a request that waits for newer documents.
func (f *Follower) Watching() bool { return f.line.used }

// looked records that the state of the host was checked and need not be reported.
func (f *Follower) looked() {
	f.reporter.busy = false
	f.reporter.lookIn(lookEvery)
}

// reported records the result of sending a report. It reports no event if that failed, because the
// need for documents has the same providers and reports their failures.
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
