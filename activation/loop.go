package activation

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/activation/needstate"
)

// maxSleep bounds the time until a change of the wall clock, or sleep of the machine, is noticed if
// nothing reports it.
const maxSleep = time.Minute

// finish is the time that running requests have to end when other documents come into force. A
// request that is cut off is sent again over another connection.
const finish = time.Second

// need is a need with the state of its delivery and of the notification of units.
type need struct {
	*needstate.Need

	enrolled int64 // identity file of the last attempt, see activation.enrolled

	notifying      bool           // units are being notified
	notifyFailures int            // consecutive failures
	notified       map[string]int // generation of which each unit was notified in this run
	nextNotify     time.Time
}

// loop works with the documents in force until they change, or nothing more is to be done. It
// returns the origin of the new documents, or "" if they have not changed.
func (a *activation) loop(ctx context.Context) string {
	ctx, cancel := context.WithCancel(ctx)
	notes := make(chan func())
	var running sync.WaitGroup
	busy := 0
	start := func(work func(context.Context) func()) {
		busy++
		running.Go(func() { notes <- work(ctx) })
	}
	var cutOff time.Time // time at which running requests are cut off, because other documents are in force
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

// requests reports whether requests other than that for documents are running.
func (a *activation) requests() bool {
	return slices.ContainsFunc(a.needs, func(n *need) bool { return n.Busy })
}

// done returns the channel of ctx's end, or nil if known is set.
func done(ctx context.Context, known bool) <-chan struct{} {
	if known {
		return nil
	}
	return ctx.Done()
}

// begin starts everything that is due. It returns the time at which to call it again, zero for
// none.
func (a *activation) begin(ctx context.Context, start needstate.Start) (next time.Time) {
	a.setBack(time.Now())
	now := time.Now().Round(0)
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

// reportSettled reports once that only renewals, and needs that others must change, remain.
func (a *activation) reportSettled() {
	if s := a.summary(); !a.settled && !slices.ContainsFunc(s.Needs, event.Need.Waits) {
		a.settled = true
		a.report(s.Event())
	}
}
