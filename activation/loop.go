package activation

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/activation/needstate"
)

// maxSleep is the longest time that the loop waits. A change of the wall clock, or sleep of the
// machine, is thus noticed within a minute even if the kernel does not report it.
const maxSleep = time.Minute

// finish is the time for which running requests may continue after new documents have come into
// force. A request that is cut off then is sent again over another connection.
const finish = time.Second

// need is a need with the state of its delivery and of the restarts of its units.
type need struct {
	*needstate.Need

	enrolled int64 // modification time of the identity file used by the last attempt; zero for none

	notifying      bool           // units are being restarted
	notifyFailures int            // number of consecutive failed attempts to restart units
	notified       map[string]int // generation for which each unit was last restarted by this process
	nextNotify     time.Time
}

// loop fulfils the needs of the documents in force. It returns when new documents come into force,
// when ctx ends, or, with Once, when nothing is left to do. The result says where the new documents
// came from. It is empty if the documents have not changed.
func (a *activation) loop(ctx context.Context) string {
	ctx, cancel := context.WithCancel(ctx)
	notes := make(chan func())
	var running sync.WaitGroup
	busy := 0
	start := func(work func(context.Context) func()) {
		busy++
		running.Go(func() { notes <- work(ctx) })
	}
	var cutOff time.Time // time at which running requests are cut off, because new documents are in force
	defer a.endAfter()
	defer running.Wait()
	defer cancel()
	for {
		a.documents.Refresh()
		a.acceptEnrolled(ctx)
		_, outdated := a.documents.Changed()
		if outdated && cutOff.IsZero() {
			cutOff = time.Now().Add(finish)
		}
		if outdated && (!a.requests() || !time.Now().Before(cutOff)) {
			cancel()
		}
		ending := ctx.Err() != nil
		a.documents.CheckFreshness()
		next := time.Now().Add(maxSleep)
		switch {
		case ending:
		case outdated:
			next = cutOff
		default:
			next = needstate.First(next, a.begin(ctx, start))
		}
		if busy == 0 && (ending || a.Once) {
			if from, changed := a.documents.Changed(); changed {
				return from
			}
			return ""
		}
		if busy == 0 || busy == 1 && a.documents.Watching() { // only a watch is running
			a.reportSettled()
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case note := <-notes:
			busy--
			a.setBack(time.Now()) // before the note plans anything by the new clock
			note()
			a.Status(a.summary())
		case <-timer.C:
		case <-a.ClockChanged:
			a.clockChanged()
		case <-done(ctx, ending):
		}
		timer.Stop()
	}
}

// requests reports whether any request is running, apart from the request for the host's documents.
func (a *activation) requests() bool {
	return slices.ContainsFunc(a.needs, func(n *need) bool { return n.Busy })
}

// done returns ctx.Done(). If the caller already knows that ctx has ended, done returns nil, so
// that a select no longer sees the end of ctx.
func done(ctx context.Context, known bool) <-chan struct{} {
	if known {
		return nil
	}
	return ctx.Done()
}

// begin starts all work that is due, such as requests, restarts of units, and reports. It returns
// the time at which it must be called again, or the zero time if no work is planned.
func (a *activation) begin(ctx context.Context, start needstate.Start) (next time.Time) {
	now := time.Now()
	a.setBack(now)
	now = now.Round(0)
	if next = a.documents.Prove(ctx, now); !next.IsZero() && !next.After(now) {
		return next // other documents came into force
	}
	pass := a.begins()
	defer pass.Leave()
	for _, n := range a.needs {
		if n.Busy { // its delivery may be in force before it is recorded
			continue
		}
		enrolled := a.enrolledFor(n)
		due := func(at time.Time, ok bool) (time.Time, bool) {
			if enrolled != 0 && enrolled != n.enrolled {
				return now, true
			}
			return a.documents.Hurry(n.Need, at, ok)
		}
		n.Order = a.documents.Order(n.ID)
		next = needstate.First(next, a.notify(n, now, start), n.Request(now, due, func(number int) {
			n.enrolled = enrolled
			start(a.attempt(n, pass, number))
		}))
	}
	return needstate.First(next, a.documents.Begin(now, pass, start), a.logs.Begin(now, a.table, start), a.crls.Begin(now, a.table, start))
}

// reportSettled reports the status of the needs once, as soon as no need can make progress by
// itself. Then only renewals remain, and needs that wait for an operator.
func (a *activation) reportSettled() {
	if s := a.summary(); !a.settled && !slices.ContainsFunc(s.Needs, event.Need.Waits) {
		a.settled = true
		a.report(s.Event())
	}
}
