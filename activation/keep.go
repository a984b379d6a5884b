package activation

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/florete/florete/activation/needstate"
)

// glance is the longest sleep: someone may ask for a need again, and where nothing
// tells it, the wall clock may be set or the machine asleep.
const glance = time.Minute

// heed is how often activation looks whether someone asks for a need again, and how
// long a need is left alone that was just asked for.
const heed = 10 * time.Second

// outcome is what came of one attempt or of telling units.
type outcome struct {
	need  *need
	apply func()
}

// keep works on the documents in force until they change, which it tells, or
// nothing more is to be done.
func (a *activation) keep(ctx context.Context) (changed bool) {
	ctx, cancel := context.WithCancel(ctx)
	outcomes := make(chan outcome)
	var running sync.WaitGroup
	busy := 0
	begin := func(work func(context.Context) outcome) {
		busy++
		running.Go(func() { outcomes <- work(ctx) })
	}
	defer running.Wait()
	defer cancel()
	for {
		ending := ctx.Err() != nil
		a.checkFreshness()
		next := time.Now().Add(glance)
		if !ending {
			next = a.begin(begin)
		}
		if busy == 0 {
			if ending || a.Once {
				return a.store.Set().Generation != a.set.Generation
			}
			a.settle()
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case o := <-outcomes:
			busy--
			o.apply()
			a.Status(a.summary())
			if a.store.Set().Generation != a.set.Generation {
				cancel()
			}
		case <-timer.C:
		case <-a.Jumped:
			a.jump()
		case <-done(ctx, ending):
		}
		timer.Stop()
	}
}

// checkFreshness raises the alarm when documents have become stale, and ends it.
func (a *activation) checkFreshness() {
	before := a.stale
	a.stale = a.State.Stale(a.set.Manifest, time.Now().Round(0))
	if (a.stale > 0) == (before > 0) {
		return
	}
	if a.stale > 0 {
		a.report(Event{Event: EventStale, Message: staleText(a.stale)})
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

// jump is what a new time changes at once; the rest goes by due times.
func (a *activation) jump() {
	for _, n := range a.needs {
		if !n.busy {
			n.state.Jump(time.Now())
		}
	}
}

// begin starts whatever is due and returns when to look again.
func (a *activation) begin(start func(func(context.Context) outcome)) time.Time {
	now := time.Now().Round(0)
	next := now.Add(glance)
	if a.Rotate != "" {
		next = now.Add(heed)
	}
	look := func(at time.Time) {
		if at.Before(next) {
			next = at
		}
	}
	for _, n := range a.needs {
		// Not while an answer is delivered: it is in force before it is on record.
		if generation, owed := n.untold(); owed && !n.busy && !n.telling && (!a.Once || n.tells == 0) {
			if n.nextTell.After(now) {
				look(n.nextTell)
			} else {
				n.telling = true
				start(func(ctx context.Context) outcome { return a.tell(ctx, n, generation) })
			}
		}
		if n.busy || a.Once && a.tried[n.ID] {
			continue
		}
		n.state.Settle(a.view(n))
		due, ok := n.state.Due(n.Renew)
		rotation := a.rotation(n)
		if at := n.state.Asked.Add(heed).Time; rotation != n.state.Rotation && rotation != 0 && (!ok || at.Before(due)) {
			due, ok = at, true
		}
		if !ok {
			continue
		}
		if due.After(now) {
			look(due)
			continue
		}
		if ids := a.blockers(n, now); len(ids) > 0 {
			a.block(n, ids, now)
			continue
		}
		n.busy, a.tried[n.ID] = true, true
		n.state.Rotation = rotation
		start(a.attempt(n))
	}
	return next
}

// rotation identifies the newest request to fetch a need again, zero for none. It is
// compared for equality alone, with the one that the last attempt serves: no order of
// clocks can lose a request that came while that attempt was under way.
func (a *activation) rotation(n *need) int64 {
	if a.Rotate == "" {
		return 0
	}
	// Another account's directory: a link there is no request.
	fi, err := os.Lstat(filepath.Join(a.Rotate, n.ID))
	if err != nil || !fi.Mode().IsRegular() {
		return 0
	}
	return fi.ModTime().UnixNano()
}

func (a *activation) block(n *need, by []string, now time.Time) {
	if n.state.State == needstate.Blocked {
		return
	}
	n.state.Block(now)
	a.save(n)
	a.report(Event{Event: EventBlocked, Need: n.ID, After: by})
	a.Status(a.summary())
}

// settle reports once that nothing is left to wait for but renewals and what
// only others can change.
func (a *activation) settle() {
	s := a.summary()
	if a.settled || slices.ContainsFunc(s.Needs, NeedStatus.waits) {
		return
	}
	a.settled = true
	a.report(s.event())
}
