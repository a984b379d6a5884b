package activation

import (
	"bytes"
	"context"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/florete/florete/activation/crl"
	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/activation/fetch"
	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/trust"
)

const (
	// crlFirst is when a host gets CRLs first, or up to twice as much later, where none came with
	// a certificate, crlEvery when again at the latest: they come with the witnessing of audit
	// logs, on the same connection.
	crlFirst = time.Minute
	crlEvery = 2 * witnessEvery

	// crlPatience is how long a provider may take for a CRL beside a certificate.
	crlPatience = 2 * time.Second

	// crlSoon is how long after a revocation list came into force here its CRLs are requested, at
	// the latest; again after crlAgain, crlTries times, from providers that do not have it yet.
	crlSoon  = 30 * time.Second
	crlAgain = 10 * time.Second
	crlTries = 6
)

// crlKeeper knows when the host gets CRLs next.
type crlKeeper struct {
	next    time.Time
	list    int64 // number of the revocation list in force when that was decided
	of      int   // the generation of documents whose roots that was decided by
	tries   int
	busy    bool
	pass    *fetch.Pass          // that may bring the first one
	begun   *atomic.Bool         // with a certificate of that pass
	has     map[string]string    // numbers of the CRLs that providers returned
	unknown map[string]time.Time // until when a provider is left alone that has none
}

// getCRLs starts to get the CRLs of this host's providers of certificates where it is time,
// and returns when to come back.
func (a *activation) getCRLs(now time.Time, start func(func(context.Context) outcome)) time.Time {
	k := &a.crls
	if a.Once || k.busy {
		return now.Add(maxSleep)
	}
	list := a.set.Roots.Revocations().InForce()
	if k.of != a.set.Generation {
		k.of = a.set.Generation
		if at, moves := a.rootsMove(now); moves && !k.next.IsZero() && at.Before(k.next) {
			k.next = at
		}
	}
	switch {
	case k.next.IsZero():
		k.next, k.list = now.Add(crlEvery), list
		k.has, k.unknown = map[string]string{}, map[string]time.Time{}
		if at, moves := a.rootsMove(now); moves {
			k.next = at
		} else if !a.hasCRL() {
			k.next = now.Add(crlFirst + rand.N(2*crlFirst))
		}
	case list != k.list: // providers read it each second
		k.next, k.list, k.tries = now.Add(2*time.Second+rand.N(crlSoon)), list, crlTries
	}
	if k.next.After(now) {
		return k.next
	}
	pass := a.host.Pass()
	get := a.crlsOver(pass, now)
	start(func(ctx context.Context) outcome {
		defer pass.Leave()
		return outcome{nil, get(ctx)}
	})
	return now.Add(maxSleep)
}

func (a *activation) hasCRL() bool {
	_, err := os.Stat(a.State.CRL())
	return err == nil
}

// crlsOver gets the CRLs of all of this host's providers of certificates over the connections
// of a pass; what it returns notes what came.
func (a *activation) crlsOver(pass *fetch.Pass, now time.Time) func(context.Context) func() {
	k := &a.crls
	var from []string
	for _, n := range a.needs {
		for _, provider := range n.Providers {
			if n.Kind == document.KindCert && n.state.State == hostdir.NeedFulfilled && !slices.Contains(from, provider) && !k.unknown[provider].After(now) {
				from = append(from, provider)
			}
		}
	}
	if !a.hasCRL() {
		clear(k.has)
	}
	k.busy = true
	has := maps.Clone(k.has)
	return func(ctx context.Context) func() {
		answers, failed := map[string]hostapi.CRL{}, map[string]*hostapi.Error{}
		for _, p := range from {
			answer, e := pass.CRL(ctx, p, has[p])
			if answers[p] = answer; e != nil {
				failed[p] = e
			}
		}
		return func() { a.gotCRLs(from, answers, failed) }
	}
}

// crlWith gets the first CRL of a provider over the connection that brought a certificate, once
// for all certificates of a pass; nil where that is not to be.
func (a *activation) crlWith(n *need, pass *fetch.Pass) func(context.Context, string) func() {
	k := &a.crls
	if a.Once || k.busy || n.Kind != document.KindCert || a.host.IsNode(n.Need) || a.hasCRL() {
		return nil
	}
	if k.pass != pass {
		k.pass, k.begun = pass, new(atomic.Bool)
	}
	begun := k.begun
	return func(ctx context.Context, provider string) func() {
		if begun.Swap(true) { // it comes with another certificate
			return func() {}
		}
		ctx, cancel := context.WithTimeout(ctx, crlPatience) // the certificate waits
		defer cancel()
		answer, e := pass.CRL(ctx, provider, "")
		return func() {
			if e != nil || k.busy || k.next.IsZero() || a.hasCRL() {
				return
			}
			next := k.next
			a.gotCRLs([]string{provider}, map[string]hostapi.CRL{provider: answer}, nil)
			if len(n.Providers) > 1 {
				k.next = next // for those of the others
			}
		}
	}
}

// gotCRLs keeps what providers returned.
func (a *activation) gotCRLs(from []string, answers map[string]hostapi.CRL, failed map[string]*hostapi.Error) {
	k, now := &a.crls, time.Now().Round(0)
	k.busy, k.next = false, now.Add(crlEvery)
	a.renewBelow(answers, now)
	if at, moves := a.rootsMove(now); moves {
		k.next = at
	}
	lists, err := a.State.CRLs()
	if err != nil {
		a.report(event.Event{Event: event.Disk, Need: "crl.pem", Message: err.Error() + ": begins anew"})
	}
	was, behind := trust.EncodeCRLs(lists...), false
	for _, p := range from {
		answer, e := answers[p], failed[p]
		if e != nil && e.Code == hostapi.CodeUnknownMethod { // of an older release
			k.unknown[p] = now.Add(witnessUnknown)
			continue
		}
		if e != nil { // the needs report who does not answer
			behind = true
			continue
		}
		behind = behind || answer.List < k.list
		if answer.CRL == "" {
			continue
		}
		added, err := crl.Add(lists, answer, a.set.Roots, now)
		if err != nil {
			a.report(event.Event{Event: event.Failed, Need: "crl.pem", Provider: p, Message: err.Error()})
			continue
		}
		lists, k.has[p] = added, answer.Number
	}
	if behind && k.tries > 0 {
		k.tries--
		k.next = now.Add(crlAgain + rand.N(crlAgain))
	}
	b := trust.EncodeCRLs(lists...)
	if bytes.Equal(b, was) {
		return
	}
	if err := atomicfile.File(a.State.CRL(), b, 0o644); err != nil {
		clear(k.has)
		a.report(event.Event{Event: event.Disk, Need: "crl.pem", Message: err.Error()})
	}
}
