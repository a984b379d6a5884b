package activation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/florete/florete/activation/documents"
	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/activation/fetch"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
)

const (
	// CommitTimeout is Config.CommitTimeout of whoever names none.
	CommitTimeout = time.Minute
	// proveEvery is the longest wait between two attempts to reach a provider, but for one that
	// a provider names.
	proveEvery = 5 * time.Second
	// extendMost bounds how long a commit, and then what was before, waits for providers that are
	// full: nobody signs that they are.
	extendMost = 10 * time.Minute
	// slept is how long activation is never idle: the machine was.
	slept = 2 * maxSleep
)

// proof is what a connection that is made now decides of documents from the network: while
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
func (a *activation) seek(now time.Time) proof {
	p := &a.prover
	c, undone := a.store.Unproved()
	if c == nil || a.Once {
		p.proof = proof{}
		return p.proof
	}
	if p.Commit == nil || p.ID != c.ID || p.undone != undone || now.Sub(p.seen).Abs() > slept {
		p.ends, p.last, p.next = now.Add(a.CommitTimeout), now.Add(extendMost), now
	}
	p.proof, p.seen = proof{c, undone}, now
	return p.proof
}

// proved notes that a provider answered over a connection made under the documents in force.
func (a *activation) proved(p proof, provider string) {
	var text string
	var err error
	if p.undone {
		text = fmt.Sprintf("%s is left: provider %s answers, and did not under it", p, provider)
		err = documents.NoteAnswered(a.State, p.ID, time.Now())
	} else {
		text = fmt.Sprintf("%s is confirmed: provider %s answers under it", p, provider)
		err = documents.Confirm(a.State, p.ID, a.Step, nil)
	}
	if err != nil {
		a.prover.next = time.Now().Round(0).Add(proveEvery)
		a.report(event.Event{Event: event.Disk, Need: "documents", Message: err.Error()})
		return
	}
	a.report(event.Event{Event: event.Commit, Message: text})
}

// proves reports whether a proof needs n: it is the need for documents, or that depends on it.
func (a *activation) proves(n *need) bool {
	if n.Kind == document.KindConfig {
		return true
	}
	d := a.documents()
	return d != nil && slices.Contains(d.DependsOn, n.ID)
}

// proofDue returns when a need is requested while a proof is sought: the documents, and what they
// wait for, as often as the proof asks.
func (a *activation) proofDue(n *need, due time.Time, ok bool) (time.Time, bool) {
	next := a.prover.next
	switch {
	case n.Kind == document.KindConfig:
		return next, true
	case a.proves(n) && n.state.State == hostdir.NeedWaiting && (!ok || next.Before(due)):
		return next, true
	}
	return due, ok
}

// proveNow has the proof sought at once that waited for a need.
func (a *activation) proveNow(n *need) {
	if n.Kind != document.KindConfig && a.proves(n) {
		a.prover.next = time.Time{}
	}
}

// unproved notes that an attempt failed.
func (a *activation) unproved(n *need, failed *fetch.Error, now time.Time) {
	wait := proveEvery/2 + rand.N(proveEvery/2)
	if at := n.state.Next; !at.IsZero() && at.Sub(now) < wait {
		wait = at.Sub(now)
	}
	a.prover.next = now.Add(max(wait, time.Duration(failed.RetryAfter)*time.Second))
	if failed.Code == hostapi.CodeFull || failed.Code == hostapi.CodeBusy {
		a.extend(now)
	}
}

// extend has a proof sought for longer: a provider that has no place for this host now is reached,
// so the documents in force do not cut the host off.
func (a *activation) extend(now time.Time) {
	p := &a.prover
	if p.Commit == nil {
		return
	}
	until := p.next.Add(a.CommitTimeout)
	if p.undone {
		if until.After(p.last) {
			until = p.last
		}
		if until.After(p.ends) {
			p.ends = until
		}
		return
	}
	if err := documents.Extend(a.State, p.ID, until.Sub(now), extendMost); err != nil {
		a.report(event.Event{Event: event.Disk, Need: "documents", Message: err.Error()})
	}
}

// redo puts documents in force once more that went back for nothing: no provider answers under
// those before either.
func (a *activation) redo(ctx context.Context, now time.Time) {
	p := &a.prover
	p.ends = now.Add(a.CommitTimeout) // where that fails
	again := false
	err := a.store.Redo(ctx, p.ID, func(set documents.Set) bool {
		again = a.foreign(set)
		return again
	})
	if err != nil {
		a.report(event.Event{Event: event.Disk, Need: "documents", Message: err.Error()})
		return
	}
	a.note = "in force again, since no provider answers under those before either"
	text := "stays unconfirmed"
	if again {
		text = "is tried again"
	}
	a.report(event.Event{Event: event.Commit, Message: fmt.Sprintf("%s %s: no provider answers without it either", p, text)})
}

// foreign reports whether the roots in force signed the node's certificate, and those of other
// documents did not: under these the host may never reach a provider again.
func (a *activation) foreign(set documents.Set) bool {
	i := slices.IndexFunc(a.needs, func(n *need) bool { return a.host.IsNode(n.Need) })
	if i < 0 || a.needs[i].foreign {
		return false
	}
	host := &fetch.Host{Layout: a.State, Manifest: set.Manifest, Roots: set.Roots.With(a.set.Roots.Revocations())}
	return !host.Trusts(a.needs[i].Need)
}
