package activation

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/activation/crl"
	"github.com/florete/florete/providers/api"
	"github.com/florete/florete/providers/replace"
)

const (
	// crlFirst is when a host gets CRLs first, or up to twice as much later, crlEvery how often,
	// give or take a half.
	crlFirst = time.Minute
	crlEvery = time.Hour

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
	tries   int
	busy    bool
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
	switch {
	case k.next.IsZero():
		k.next, k.list = now.Add(crlFirst+rand.N(2*crlFirst)), list
		k.has, k.unknown = map[string]string{}, map[string]time.Time{}
	case list != k.list: // providers read it each second
		k.next, k.list, k.tries = now.Add(2*time.Second+rand.N(crlSoon)), list, crlTries
	}
	if k.next.After(now) {
		return k.next
	}
	var from []string
	for _, n := range a.needs {
		for _, provider := range n.Providers {
			if n.Kind == florete.KindCert && n.state.State == florete.NeedFulfilled && !slices.Contains(from, provider) && !k.unknown[provider].After(now) {
				from = append(from, provider)
			}
		}
	}
	if _, err := os.Stat(a.State.CRL()); err != nil {
		clear(k.has)
	}
	k.busy = true
	host, has := a.host, k.has
	start(func(ctx context.Context) outcome {
		answers, failed := map[string]api.CRL{}, map[string]*api.Error{}
		for _, p := range from {
			answer, e := host.CRL(ctx, p, has[p])
			if answers[p] = answer; e != nil {
				failed[p] = e
			}
		}
		return outcome{nil, func() { a.gotCRLs(from, answers, failed) }}
	})
	return now.Add(maxSleep)
}

// gotCRLs keeps what providers returned.
func (a *activation) gotCRLs(from []string, answers map[string]api.CRL, failed map[string]*api.Error) {
	k, now := &a.crls, time.Now().Round(0)
	k.busy, k.next = false, now.Add(crlEvery/2+rand.N(crlEvery))
	lists, err := a.State.CRLs()
	if err != nil {
		a.report(Event{Event: EventDisk, Need: "crl.pem", Message: err.Error() + ": begins anew"})
	}
	was, behind := florete.EncodeCRLs(lists...), false
	for _, p := range from {
		answer, e := answers[p], failed[p]
		if e != nil && e.Code == api.CodeUnknownMethod { // of an older release
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
			a.report(Event{Event: EventFailed, Need: "crl.pem", Provider: p, Message: err.Error()})
			continue
		}
		lists, k.has[p] = added, answer.Number
	}
	if behind && k.tries > 0 {
		k.tries--
		k.next = now.Add(crlAgain + rand.N(crlAgain))
	}
	b := florete.EncodeCRLs(lists...)
	if bytes.Equal(b, was) {
		return
	}
	if err := replace.File(a.State.CRL(), b, 0o644); err != nil {
		clear(k.has)
		a.report(Event{Event: EventDisk, Need: "crl.pem", Message: err.Error()})
	}
}
