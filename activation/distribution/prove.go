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
	// proveEvery is the longest wait between two attempts to reach a provider, but for one that
	// a provider names.
	proveEvery = 5 * time.Second
	// extendMost bounds how long a commit, and then what was before, waits for providers that are
	// full: nobody signs that they are.
	extendMost = 10 * time.Minute
	// slept is longer than activation is ever idle: where it was, the machine slept.
	slept = 2 * time.Minute
)

// proof names the decision that a connection made now brings about documents from the network: while
// their commit is pending, whether they stay; when it went back, whether it had cut this host
// off. Silence leaves the first to whoever goes back, and ends the second with the documents
// in force once more, since those before are no better.
type proof struct {
	*hostdir.Commit
	undone bool
}

// prover knows when to seek a proof.
type prover struct {
	proof
	next time.Time // attempt
	ends time.Time // when nobody has answered under the documents before
	last time.Time // that ends may be
	seen time.Time // last
}

// seek is the proof to be sought, its commit nil for none.
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

// proved notes that a provider answered over a connection made under the documents in force.
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

// Hurry changes when a need is due that the documents wait for while a proof is sought: as often as
// that asks.
func (f *Follower) Hurry(n *needstate.Need, due time.Time, ok bool) (time.Time, bool) {
	next := f.prover.next
	if f.prover.Commit != nil && f.waitsFor(n) && n.State.State == hostdir.NeedWaiting && (!ok || next.Before(due)) {
		return next, true
	}
	return due, ok
}

// Fulfilled notes that a need is: a proof that waited for it is sought at once, and with a new SVID of
// the node, the documents are watched at once.
func (f *Follower) Fulfilled(n *needstate.Need) {
	if f.waitsFor(n) {
		f.prover.next = time.Time{}
	}
	if f.table.Host.IsNode(n.Need) {
		f.watcher.now()
	}
}

// Failed notes that an attempt at a need failed.
func (f *Follower) Failed(n *needstate.Need, failed *fetch.Error) {
	if f.waitsFor(n) {
		f.unproved(n, failed)
	}
}

// unproved notes that what a proof takes failed.
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

// extend has a proof sought for longer: a provider that has no place for this host now is reached,
// so the documents in force do not cut the host off.
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

// Prove ends a proof that nobody answers, with the documents in force once more, and returns when to
// come back; zero for not by itself.
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

// redo puts documents in force once more that went back for nothing: no provider answers under
// those before either.
func (f *Follower) redo(ctx context.Context, now time.Time) {
	p := &f.prover
	p.ends = now.Add(f.Timeout) // where that fails
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

// foreign reports whether the roots in force signed the node's certificate, and those of other
// documents did not: under these the host may never reach a provider again.
func (f *Follower) foreign(set documents.Set) bool {
	n := f.table.Node()
	if n == nil || n.Foreign {
		return false
	}
	host := &fetch.Host{Layout: f.table.Host.Layout, Manifest: set.Manifest, Roots: set.Roots.With(f.set.Roots.Revocations())}
	return !host.Trusts(n.Need)
}
