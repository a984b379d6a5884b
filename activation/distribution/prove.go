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
	// proveEvery is the maximum wait between two attempts to reach a provider during a proof. A
	// provider may request a longer wait.
	proveEvery = 5 * time.Second
	// extendMost limits how long a proof is extended while providers answer that they are full. The
	// limit is needed because this answer is not authenticated.
	extendMost = 10 * time.Minute
	// slept is longer than any pause in activation's loop. After a longer pause, the machine must
	// have been asleep.
	slept = 2 * time.Minute
)

// proof is the question whether documents from the network cut this host off from its providers. It
// is answered by a new connection to a provider.
//
// While the change of new documents is pending, an answer under them makes them permanent. If there
// is no answer, they are rolled back at the deadline. After that, an answer under the old documents
// shows that the new ones had cut the host off. If there is no answer then either, the new
// documents are put in force again, because the old ones are no better.
type proof struct {
	*hostdir.Change
	undone bool
}

// prover determines when the next attempt at a proof is due.
type prover struct {
	proof
	next time.Time // time of the next attempt
	ends time.Time // time until which the host waits for an answer under the old documents
	last time.Time // latest time to which ends can be extended
	seen time.Time // time of the last call of seek
}

// seek returns the proof that is needed now. If none is needed, the change in the result is nil.
func (f *Follower) seek(now time.Time) proof {
	p := &f.prover
	c, undone := f.Store.Unproved()
	if c == nil || f.table.Once {
		p.proof = proof{}
		return p.proof
	}
	if p.Change == nil || p.ID != c.ID || p.undone != undone || now.Sub(p.seen).Abs() > slept {
		p.ends, p.last, p.next = now.Add(f.Timeout), now.Add(extendMost), now
	}
	p.proof, p.seen = proof{c, undone}, now
	return p.proof
}

// proved records that a provider has answered over a connection made under the documents in force.
func (f *Follower) proved(p proof, provider string) {
	var text string
	var err error
	if p.undone {
		text = fmt.Sprintf("%s is left: provider %s answers, and did not under it", p, provider)
		err = documents.NoteAnswered(f.table.Host.Layout, p.ID, time.Now())
	} else {
		text = fmt.Sprintf("%s is confirmed: provider %s answers under it", p, provider)
		err = f.Store.Confirm(p.ID, nil)
	}
	if err != nil {
		f.prover.next = time.Now().Round(0).Add(proveEvery)
		f.disk(err)
		return
	}
	f.table.Report(event.Event{Event: event.Confirm, Message: text})
}

// waitsFor reports whether a need must be fulfilled before documents can be requested.
func (f *Follower) waitsFor(n *needstate.Need) bool {
	return f.need != nil && slices.Contains(f.need.DependsOn, n.ID)
}

// Hurry returns the time of the next request for a need, and false if no request is planned.
// Normally it returns the arguments due and ok, the results of State.Due. While new documents wait
// for a provider's answer that confirms them, a need without which the host cannot ask that
// provider gets an earlier time.
func (f *Follower) Hurry(n *needstate.Need, due time.Time, ok bool) (time.Time, bool) {
	next := f.prover.next
	if f.prover.Change != nil && f.waitsFor(n) && n.State.State == hostdir.NeedWaiting && (!ok || next.Before(due)) {
		return next, true
	}
	return due, ok
}

// Fulfilled tells the Follower that a need was fulfilled. If new documents wait to be confirmed by
// a provider and the need was missing for that, the provider is asked at once. If the need is the
// node's own SVID, the Follower begins to watch for newer documents.
func (f *Follower) Fulfilled(n *needstate.Need) {
	if f.waitsFor(n) {
		f.prover.next = time.Time{}
	}
	if f.table.Host.IsNode(n.Need) {
		f.watcher.now()
	}
}

// Failed tells the Follower that an attempt to fulfil a need has failed. New documents may be
// waiting for a provider's answer that confirms them. If the host cannot ask for that answer
// without this need, it asks again later.
func (f *Follower) Failed(n *needstate.Need, failed *fetch.Error) {
	if f.waitsFor(n) {
		f.unproved(n, failed)
	}
}

// unproved records that an attempt at a proof has failed, and plans the next one.
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

// extend extends the time for a proof after a provider answered that it is full. Since the host
// reached that provider, its documents do not cut it off.
func (f *Follower) extend(now time.Time) {
	p := &f.prover
	if p.Change == nil {
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

// Prove restores new documents that the host has rolled back because no provider answered. It does
// so once it is clear that no provider answers under the older documents either, so that the new
// ones need not be the cause. It returns the time at which it must be called again, or the zero
// time if no documents are waiting to be restored.
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

// redo puts documents in force again after their rollback has not helped, because no provider
// answers under the old documents either.
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
	f.table.Report(event.Event{Event: event.Confirm, Message: fmt.Sprintf("%s %s: no provider answers without it either", p, text)})
}

// foreign reports whether a set of documents lacks the root that signed the node's certificate,
// although the documents in force have it. Under the given documents, this host might never reach a
// provider again.
func (f *Follower) foreign(set documents.Set) bool {
	n := f.table.Node()
	if n == nil || n.Foreign {
		return false
	}
	host := &fetch.Host{Layout: f.table.Host.Layout, SVIDs: f.table.Host.SVIDs, Manifest: set.Manifest, Roots: set.Roots.With(f.set.Roots.Revocations())}
	return !host.Trusts(n.Need)
}
