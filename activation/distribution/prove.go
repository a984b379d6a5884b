package distribution

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/florete/florete/activation/documents"
	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/activation/fetch"
	"github.com/florete/florete/activation/needstate"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
)

const (
	// proveEvery is the maximum wait between two attempts to reach a provider, except for a wait
	// that a provider requested.
	proveEvery = 5 * time.Second
	// extendMost bounds the time by which a commit or its rollback is extended for providers that
	// are full. Their answer is not authenticated.
	extendMost = 10 * time.Minute
	// slept is longer than activation is ever idle. If activation was idle for longer, the machine
	// slept.
	slept = 2 * time.Minute
)

// proof is a question about documents from the network that an answer over a new connection
// decides. While their commit is pending, an answer makes them permanent. After they were rolled
// back, an answer shows that they had cut this host off. Without an answer, the pending commit is
// rolled back at its deadline; after a rollback the documents are put in force again, because the
// old ones are no better.
type proof struct {
	*hostdir.Commit
	undone bool
}

// prover schedules proofs.
type prover struct {
	proof
	next time.Time // time of the next attempt
	ends time.Time // end of the wait for an answer under the old documents
	last time.Time // latest value of ends
	seen time.Time // last call
}

// seek returns the proof that is needed. Its commit is nil if none is.
func (f *Follower) seek(now time.Time) proof {
	p := &f.prover
	c, undone := f.Store.Unproved()
	if c == nil || f.table.Once {
		p.proof = proof{}
		return p.proof
	}
	if p.Commit == nil || p.ID != c.ID || p.undone != undone || now.Sub(p.seen).Abs() > slept {
		p.ends, p.last, p.next = now.Add(f.Timeout), now.Add(extendMost), now
	}
	p.proof, p.seen = proof{c, undone}, now
	return p.proof
}

// proved records that a provider answered over a connection made under the documents in force.
func (f *Follower) proved(p proof, provider string) {
	var text string
	var err error
	if p.undone {
		text = fmt.Sprintf("%s is left: provider %s answers, and did not under it", p, provider)
		err = documents.NoteAnswered(f.table.Host.Layout, p.ID, time.Now())
	} else {
		text = fmt.Sprintf("%s is confirmed: provider %s answers under it", p, provider)
		err = documents.Confirm(f.table.Host.Layout, p.ID, f.table.Step, nil)
	}
	if err != nil {
		f.prover.next = time.Now().Round(0).Add(proveEvery)
		f.disk(err)
		return
	}
	f.table.Report(event.Event{Event: event.Commit, Message: text})
}

// waitsFor reports whether the documents depend on a need.
func (f *Follower) waitsFor(n *needstate.Need) bool {
	return f.need != nil && slices.Contains(f.need.DependsOn, n.ID)
}

// Hurry returns an earlier due time for a need on which the documents depend, while new documents
// wait for their proof. For other needs it returns due and ok unchanged.
func (f *Follower) Hurry(n *needstate.Need, due time.Time, ok bool) (time.Time, bool) {
	next := f.prover.next
	if f.prover.Commit != nil && f.waitsFor(n) && n.State.State == hostdir.NeedWaiting && (!ok || next.Before(due)) {
		return next, true
	}
	return due, ok
}

// Fulfilled records that a need was fulfilled. If the proof of new documents waited for the need,
// the proof is attempted at once. If the need is the node's own SVID, the host starts to watch for
// newer documents at once.
func (f *Follower) Fulfilled(n *needstate.Need) {
	if f.waitsFor(n) {
		f.prover.next = time.Time{}
	}
	if f.table.Host.IsNode(n.Need) {
		f.watcher.now()
	}
}

// Failed records that an attempt to fulfil a need failed.
func (f *Follower) Failed(n *needstate.Need, failed *fetch.Error) {
	if f.waitsFor(n) {
		f.unproved(n, failed)
	}
}

// unproved records that a step of a proof failed.
func (f *Follower) unproved(n *needstate.Need, failed *fetch.Error) {
	now, wait := time.Now().Round(0), proveEvery/2+rand.N(proveEvery/2)
	if at := n.State.Next; !at.IsZero() && at.Sub(now) < wait {
		wait = at.Sub(now)
	}
	f.prover.next = now.Add(max(wait, time.Duration(failed.RetryAfter)*time.Second))
	if failed.Code == hostapi.CodeFull.Name || failed.Code == hostapi.CodeBusy.Name {
		f.extend(now)
	}
}

// extend extends the time for a proof. A provider that has no place for this host was reached, so
// the documents in force do not cut the host off.
func (f *Follower) extend(now time.Time) {
	p := &f.prover
	if p.Commit == nil {
		return
	}
	until := p.next.Add(f.Timeout)
	if p.undone {
		if until.After(p.last) {
			until = p.last
		}
		if until.After(p.ends) {
			p.ends = until
		}
		return
	}
	if err := documents.Extend(f.table.Host.Layout, p.ID, until.Sub(now), extendMost); err != nil {
		f.disk(err)
	}
}

// Prove puts documents that were rolled back in force again if no provider answers under the old
// documents either. It returns the time at which to call it again; zero means only after a change.
func (f *Follower) Prove(ctx context.Context, now time.Time) time.Time {
	if p := f.seek(now); !p.undone || f.need != nil && f.need.Busy {
		return time.Time{}
	}
	if !f.prover.ends.After(now) {
		f.redo(ctx, now)
		return now
	}
	return f.prover.ends
}

// redo puts documents in force again that were rolled back in vain, because no provider answers
// under the old documents either.
func (f *Follower) redo(ctx context.Context, now time.Time) {
	p := &f.prover
	p.ends = now.Add(f.Timeout) // in case of an error
	again := false
	err := f.Store.Redo(ctx, p.ID, func(set documents.Set) bool {
		again = f.foreign(set)
		return again
	})
	if err != nil {
		f.disk(err)
		return
	}
	f.note = "in force again, since no provider answers under those before either"
	text := "stays unconfirmed"
	if again {
		text = "is tried again"
	}
	f.table.Report(event.Event{Event: event.Commit, Message: fmt.Sprintf("%s %s: no provider answers without it either", p, text)})
}

// foreign reports whether the node's certificate was signed by the roots in force but not by those
// of other documents. Under such documents the host might never reach a provider again.
func (f *Follower) foreign(set documents.Set) bool {
	n := f.table.Node()
	if n == nil || n.Foreign {
		return false
	}
	host := &fetch.Host{Layout: f.table.Host.Layout, Manifest: set.Manifest, Roots: set.Roots.With(f.set.Roots.Revocations())}
	return !host.Trusts(n.Need)
}
