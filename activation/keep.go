package activation

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
)

// maxSleep bounds how long a change of the wall clock, or sleep of the machine, stays
// unseen where nothing reports it.
const maxSleep = time.Minute

// refetchPoll is how often activation checks Config.Refetch, and the shortest time between
// two requests that it causes for a need. Polling works under simulated time, where a
// watch would not.
const refetchPoll = 10 * time.Second

// keyPoll is how often activation looks at the key by which this host proves itself, while a need
// waits for that to change.
const keyPoll = 5 * time.Second

// finish is how long requests that are under way when other documents come in force may take to
// end: one that is cut off is sent again, over another connection.
const finish = time.Second

// outcome is what came of one attempt or of notifying units.
type outcome struct {
	need  *need
	apply func()
}

// keep works on the documents in force until they change, or nothing more is to be done.
func (a *activation) keep(ctx context.Context) (changed bool) {
	ctx, cancel := context.WithCancel(ctx)
	outcomes := make(chan outcome)
	var running sync.WaitGroup
	busy := 0
	begin := func(work func(context.Context) outcome) {
		busy++
		running.Go(func() { outcomes <- work(ctx) })
	}
	var cutOff time.Time // when requests under way end, since other documents came in force
	defer a.endAfter()
	defer running.Wait()
	defer cancel()
	for {
		a.refresh(ctx)
		outdated := a.outdated()
		if outdated && cutOff.IsZero() {
			cutOff = time.Now().Add(finish)
		}
		if outdated && (!a.requests() || !time.Now().Before(cutOff)) {
			cancel()
		}
		ending := ctx.Err() != nil
		a.checkFreshness()
		next := time.Now().Add(maxSleep)
		switch {
		case ending:
		case outdated:
			next = cutOff
		default:
			next = a.begin(ctx, begin)
		}
		if busy == 0 {
			if ending || a.Once {
				return a.outdated()
			}
		}
		if busy == 0 || busy == 1 && a.watcher.busy { // a watch waits for others
			a.reportSettled()
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case o := <-outcomes:
			busy--
			o.apply()
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
	return slices.ContainsFunc(a.needs, func(n *need) bool { return n.busy && n.Kind != document.KindConfig })
}

// outdated reports whether other documents, or another revocation list, are in force than the
// needs are kept by.
func (a *activation) outdated() bool {
	is := a.store.Set()
	return is.Generation != a.set.Generation || is.Roots.Revocations().Newer(a.set.Roots.Revocations())
}

// refresh finds what flor sync, or what goes back from it, put in force, and what flor enroll left.
func (a *activation) refresh(ctx context.Context) {
	note, err := a.store.Refresh()
	if err != nil {
		a.report(event.Event{Event: event.Disk, Need: "documents", Message: err.Error()})
	}
	if note != "" {
		a.note = "put in force by flor sync, or gone back"
	}
	a.acceptEnrolled(ctx)
}

// checkFreshness reports that documents have become stale, or are so no more.
func (a *activation) checkFreshness() {
	now := time.Now().Round(0)
	if now.Sub(a.fresh).Abs() < lookAgain {
		return
	}
	before := a.stale
	a.fresh, a.stale = now, a.State.Stale(a.set.Manifest, now)
	if (a.stale > 0) == (before > 0) {
		return
	}
	if a.stale > 0 {
		a.report(event.Event{Event: event.Stale, Message: event.StaleText(a.stale)})
	}
	a.Status(a.summary())
}

// done is ctx's end, until it is known.
func done(ctx context.Context, known bool) <-chan struct{} {
	if known {
		return nil
	}
	return ctx.Done()
}

// clockChanged retries what failed for a wrong clock; the rest goes by due times.
func (a *activation) clockChanged() {
	for _, n := range a.needs {
		if !n.busy {
			n.state.ClockChanged(time.Now())
		}
	}
}

// setBack keeps waits as long as they were meant when the wall clock, by which they are kept, was
// set back: needs see to their own. A clock that was set ahead, or a machine that slept, has what
// fell due requested now.
func (a *activation) setBack(now time.Time) {
	last := a.moment
	a.moment = now
	if last.IsZero() {
		return
	}
	if by := setBack(last.Round(0), now.Round(0), now.Sub(last)); by > 0 {
		a.rewind(by)
	}
}

// setBack is by how much the wall clock was set back while it went from one time to another and
// some time passed; zero for not at all.
func setBack(from, to time.Time, passed time.Duration) time.Duration {
	if by := from.Add(passed).Sub(to); by > time.Second {
		return by
	}
	return 0
}

// rewind moves all times in the future.
func (a *activation) rewind(by time.Duration) {
	for _, at := range []*time.Time{
		&a.reporter.look, &a.reporter.due, &a.watcher.next, &a.witnesser.next, &a.crls.next,
		&a.prover.next, &a.prover.ends, &a.prover.last, &a.prover.seen, &a.opened,
	} {
		if !at.IsZero() {
			*at = at.Add(-by)
		}
	}
	for _, n := range a.needs {
		n.nextNotify = n.nextNotify.Add(-by)
	}
}

// begin starts whatever is due and returns when to call it again.
func (a *activation) begin(ctx context.Context, start func(func(context.Context) outcome)) time.Time {
	a.setBack(time.Now())
	now := time.Now().Round(0)
	next := now.Add(maxSleep)
	notAfter := func(at time.Time) {
		if at.Before(next) {
			next = at
		}
	}
	proof := a.seek(now)
	if n := a.documents(); proof.undone && (n == nil || !n.busy) {
		if !a.prover.ends.After(now) {
			a.redo(ctx, now)
			return now
		}
		notAfter(a.prover.ends)
	}
	pass := a.begins()
	defer pass.Leave()
	for _, n := range a.needs {
		if n.busy { // what it delivers is in force before it is on record
			continue
		}
		if a.look(n, now); a.Refetch != "" {
			notAfter(n.seen.at.Add(refetchPoll))
		}
		if n.owed() && !n.notifying && (!a.Once || n.notifyFailures == 0) {
			if n.nextNotify.After(now) {
				notAfter(n.nextNotify)
			} else {
				n.notifying = true
				generation := n.seen.generation
				start(func(ctx context.Context) outcome { return a.notifyUnits(ctx, n, generation) })
			}
		}
		if a.Once && a.tried[n.ID] {
			continue
		}
		n.state.Reconcile(a.observe(n))
		if n.awaitsKey() {
			if a.host.KeySeen() != n.key {
				n.state.KeyChanged(now)
			}
			notAfter(now.Add(keyPoll))
		}
		due, ok := n.state.Due(n.Renew)
		if proof.Commit != nil {
			due, ok = a.proofDue(n, due, ok)
		}
		refetch, rotate := n.seen.refetch, n.seen.rotate
		ordered := n.state.Ordered(a.reporter.rotate[n.ID])
		wanted := refetch != 0 && refetch != n.state.Rotation || rotate != 0 && rotate != n.state.RotateRequest || ordered
		if at := n.state.LastAttempt.Add(refetchPoll).Time; wanted && (!ok || at.Before(due)) {
			due, ok = at, true
		}
		enrolled := a.enrolledFor(n)
		if enrolled != n.enrolled && enrolled != 0 {
			due, ok = now, true
		}
		if !ok {
			continue
		}
		if due.After(now) {
			notAfter(due)
			continue
		}
		if ids := a.blockers(n, now); len(ids) > 0 {
			a.block(n, ids, now)
			continue
		}
		n.busy, a.tried[n.ID] = true, true
		n.state.Rotation, n.enrolled = refetch, enrolled
		if rotate != 0 && rotate != n.state.RotateRequest {
			n.state.RequestRotation(rotate)
		}
		if ordered {
			n.state.WantRotation = a.reporter.rotate[n.ID]
		}
		n.state.RotateByAge(n.Renew, now)
		start(a.attempt(n, pass))
	}
	notAfter(a.reports(now, start))
	notAfter(a.watches(now, start))
	notAfter(a.witnessLogs(now, start))
	notAfter(a.getCRLs(now, start))
	return next
}

// requested identifies the newest request to fetch a need again, or to rotate its secret, by
// the name of its file; zero for none. It is compared for equality alone, with the one that
// the last attempt serves: no order of clocks can lose a request that came while that
// attempt was under way.
func (a *activation) requested(name string) int64 {
	if a.Refetch == "" {
		return 0
	}
	// Another account's directory: a link there is no request.
	fi, err := os.Lstat(filepath.Join(a.Refetch, name))
	if err != nil || !fi.Mode().IsRegular() {
		return 0
	}
	return fi.ModTime().UnixNano()
}

func (a *activation) block(n *need, by []string, now time.Time) {
	if n.state.State == hostdir.NeedBlocked {
		return
	}
	n.state.Block(now)
	a.save(n)
	a.report(event.Event{Event: event.Blocked, Need: n.ID, BlockedBy: by})
	a.Status(a.summary())
}

// reportSettled reports once that nothing is left to wait for but renewals and what only
// others can change.
func (a *activation) reportSettled() {
	s := a.summary()
	if a.settled || slices.ContainsFunc(s.Needs, event.Need.Waits) {
		return
	}
	a.settled = true
	a.report(s.Event())
}

func (a *activation) summary() event.Summary {
	s := event.Summary{Stale: a.stale, Needs: slices.Grow([]event.Need(nil), len(a.needs))}
	for _, n := range a.needs {
		s.Needs = append(s.Needs, event.Need{
			ID: n.ID, Kind: n.Kind, State: n.state.State, Attempts: n.state.Attempts, Total: n.state.Total,
			Provider: n.state.Provider, Error: n.state.Error, Next: n.state.Next,
		})
	}
	return s
}
