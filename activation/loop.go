package activation

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/activation/needstate"
)

// maxSleep bounds how long a change of the wall clock, or sleep of the machine, stays
// unseen where nothing reports it.
const maxSleep = time.Minute

// finish is how long requests that are under way when other documents come in force may take to
// end: one that is cut off is sent again, over another connection.
const finish = time.Second

// need is a need that is delivered, and units notified of.
type need struct {
	*needstate.Need

	enrolled int64 // the identity file that the last attempt was for, see activation.enrolled

	notifying      bool           // units are being notified
	notifyFailures int            // in a row
	notified       map[string]int // the generation that a unit was notified of in this run
	nextNotify     time.Time
}

// loop works on the documents in force until they change, or nothing more is to be done. It returns
// where those that are in force then are from; empty where they are not others.
func (a *activation) loop(ctx context.Context) string {
	ctx, cancel := context.WithCancel(ctx)
	notes := make(chan func())
	var running sync.WaitGroup
	busy := 0
	start := func(work func(context.Context) func()) {
		busy++
		running.Go(func() { notes <- work(ctx) })
	}
	var cutOff time.Time // when requests under way end, since other documents came in force
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
		if busy == 0 || busy == 1 && a.documents.Watching() { // a watch waits for others
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

// requests reports whether requests other than that for documents are under way.
func (a *activation) requests() bool {
	return slices.ContainsFunc(a.needs, func(n *need) bool { return n.Busy })
}

// done is ctx's end, until it is known.
func done(ctx context.Context, known bool) <-chan struct{} {
	if known {
		return nil
	}
	return ctx.Done()
}

// begin starts whatever is due and returns when to call it again; zero for not by itself.
func (a *activation) begin(ctx context.Context, start needstate.Start) (next time.Time) {
	a.setBack(time.Now())
	now := time.Now().Round(0)
	if next = a.documents.Prove(ctx, now); !next.IsZero() && !next.After(now) {
		return next // others came in force
	}
	pass := a.begins()
	defer pass.Leave()
	for _, n := range a.needs {
		if n.Busy { // what it delivers is in force before it is on record
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

// reportSettled reports once that nothing is left to wait for but renewals and what only
// others can change.
func (a *activation) reportSettled() {
	if s := a.summary(); !a.settled && !slices.ContainsFunc(s.Needs, event.Need.Waits) {
		a.settled = true
		a.report(s.Event())
	}
}
