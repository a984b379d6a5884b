// Package crl maintains the certificate revocation lists (RFC 5280) of issuing CAs in a file, for
// other software on the host.
package crl

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/activation/fetch"
	"github.com/florete/florete/activation/needstate"
	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/trust"
)

// Add is the lists that a host has, once a provider returned its newest. One that has a lower
// number than the one before, or that no issuing CA of the trust domain signed, is refused.
func Add(lists []*x509.RevocationList, answer hostapi.CRL, roots *trust.Roots, now time.Time) ([]*x509.RevocationList, error) {
	is, err := open(answer, roots, now)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(lists, func(l *x509.RevocationList) bool { return bytes.Equal(l.AuthorityKeyId, is.AuthorityKeyId) })
	switch {
	case i < 0:
		lists = append(lists, is)
	case is.Number.Cmp(lists[i].Number) < 0 && now.Before(lists[i].NextUpdate):
		return nil, fmt.Errorf("CRL: of number %x, it had %x before", is.Number, lists[i].Number)
	default:
		lists[i] = is
	}
	// Whatever a CA issued that signs no more has ended by then.
	lists = slices.DeleteFunc(lists, func(l *x509.RevocationList) bool { return now.After(l.NextUpdate.Add(trust.MaxLifetime)) })
	slices.SortFunc(lists, func(a, b *x509.RevocationList) int { return bytes.Compare(a.AuthorityKeyId, b.AuthorityKeyId) })
	return lists, nil
}

func open(answer hostapi.CRL, roots *trust.Roots, now time.Time) (*x509.RevocationList, error) {
	block, _ := pem.Decode([]byte(answer.Issuer))
	if block == nil {
		return nil, errors.New("CRL: comes without the certificate of its issuer")
	}
	issuer, err := x509.ParseCertificate(block.Bytes)
	if err == nil {
		err = roots.CheckIssuing(issuer, now)
	}
	var lists []*x509.RevocationList
	if err == nil {
		lists, err = trust.ParseCRLs([]byte(answer.CRL))
	}
	if err == nil && len(lists) != 1 {
		err = fmt.Errorf("%d lists, want one", len(lists))
	}
	if err == nil {
		err = lists[0].CheckSignatureFrom(issuer)
	}
	if err == nil && (lists[0].Number == nil || !bytes.Equal(lists[0].AuthorityKeyId, issuer.SubjectKeyId)) {
		err = errors.New("without number or authority key identifier")
	}
	if err != nil {
		return nil, fmt.Errorf("CRL: %w", err)
	}
	return lists[0], nil
}

const (
	// A host that got no CRL with a certificate requests one after crlFirst, or up to twice as much
	// later, and again after crlEvery at the latest: they come with the witnessing of audit logs, on
	// the same connection.
	crlFirst = time.Minute
	crlEvery = 2 * time.Hour

	// For crlUnknown a provider that has no CRL is left alone.
	crlUnknown = 24 * time.Hour

	// crlPatience bounds the time that a provider takes for a CRL beside a certificate.
	crlPatience = 2 * time.Second

	// Within crlSoon after a revocation list came into force here its CRLs are requested; again after crlAgain, crlTries times, from providers that do not have it yet.
	crlSoon  = 30 * time.Second
	crlAgain = 10 * time.Second
	crlTries = 6
)

// Keeper gets the CRLs of a host's providers of certificates. It belongs to the goroutine that owns the
// needs.
type Keeper struct {
	next    time.Time
	list    int64  // number of the revocation list in force when that was decided
	of      string // tag of the documents by whose roots that was decided
	tries   int
	busy    bool
	pass    *fetch.Pass          // that may bring the first one
	begun   *atomic.Bool         // with a certificate of that pass
	has     map[string]string    // numbers of the CRLs that providers returned
	unknown map[string]time.Time // until when a provider is left alone that has none
}

// Begin starts to get CRLs where it is time, and returns when to come back; zero for not by itself.
func (k *Keeper) Begin(now time.Time, t *needstate.Table, start needstate.Start) time.Time {
	if t.Once || k.busy {
		return time.Time{}
	}
	list := t.Host.Roots.Revocations().InForce()
	if k.of != t.Host.Tag {
		k.of = t.Host.Tag
		if at, moves := rootsMove(t, now); moves && !k.next.IsZero() && at.Before(k.next) {
			k.next = at
		}
	}
	switch {
	case k.next.IsZero():
		k.next, k.list = now.Add(crlEvery), list
		k.has, k.unknown = map[string]string{}, map[string]time.Time{}
		if at, moves := rootsMove(t, now); moves {
			k.next = at
		} else if !hasCRL(t) {
			k.next = now.Add(crlFirst + rand.N(2*crlFirst))
		}
	case list != k.list: // providers read it each second
		k.next, k.list, k.tries = now.Add(2*time.Second+rand.N(crlSoon)), list, crlTries
	}
	if k.next.After(now) {
		return k.next
	}
	pass := t.Host.Pass()
	get := k.over(t, pass, now)
	start(func(ctx context.Context) func() {
		defer pass.Leave()
		return get(ctx)
	})
	return time.Time{}
}

func hasCRL(t *needstate.Table) bool {
	_, err := os.Stat(t.Host.Layout.CRL())
	return err == nil
}

// Over does the same over the connections of a pass, whenever it is; nothing while they are under way.
func (k *Keeper) Over(t *needstate.Table, pass *fetch.Pass, now time.Time) func(context.Context) func() {
	if k.busy || k.next.IsZero() {
		return func(context.Context) func() { return func() {} }
	}
	return k.over(t, pass, now)
}

// Rewind keeps the wait as long as it was meant when the clock was set back.
func (k *Keeper) Rewind(by time.Duration) { needstate.Rewind(by, &k.next) }

// over gets the CRLs of all of this host's providers of certificates over the connections
// of a pass; what it returns notes what came.
func (k *Keeper) over(t *needstate.Table, pass *fetch.Pass, now time.Time) func(context.Context) func() {
	var from []string
	for _, n := range t.Needs {
		for _, provider := range n.Providers {
			if n.Kind == document.KindCert && n.State.State == hostdir.NeedFulfilled && !slices.Contains(from, provider) && !k.unknown[provider].After(now) {
				from = append(from, provider)
			}
		}
	}
	if !hasCRL(t) {
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
		return func() { k.got(t, from, answers, failed) }
	}
}

// With gets the first CRL of a provider over the connection that brought a certificate, once
// for all certificates of a pass; nil where that is not to be.
func (k *Keeper) With(t *needstate.Table, n *needstate.Need, pass *fetch.Pass) func(context.Context, string) func() {
	if t.Once || k.busy || n.Kind != document.KindCert || t.Host.IsNode(n.Need) || hasCRL(t) {
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
			if e != nil || k.busy || k.next.IsZero() || hasCRL(t) {
				return
			}
			next := k.next
			k.got(t, []string{provider}, map[string]hostapi.CRL{provider: answer}, nil)
			if len(n.Providers) > 1 {
				k.next = next // for those of the others
			}
		}
	}
}

// got keeps what providers returned.
func (k *Keeper) got(t *needstate.Table, from []string, answers map[string]hostapi.CRL, failed map[string]*hostapi.Error) {
	layout, now := t.Host.Layout, time.Now().Round(0)
	k.busy, k.next = false, now.Add(crlEvery)
	renewBelow(t, answers, now)
	if at, moves := rootsMove(t, now); moves {
		k.next = at
	}
	lists, err := layout.CRLs()
	if err != nil {
		t.Report(event.Event{Event: event.Disk, Need: "crl.pem", Message: err.Error() + ": begins anew"})
	}
	was, behind := trust.EncodeCRLs(lists...), false
	for _, p := range from {
		answer, e := answers[p], failed[p]
		if e != nil && e.Code == hostapi.CodeUnknownMethod.Name { // of an older release
			k.unknown[p] = now.Add(crlUnknown)
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
		added, err := Add(lists, answer, t.Host.Roots, now)
		if err != nil {
			t.Report(event.Event{Event: event.Failed, Need: "crl.pem", Provider: p, Message: err.Error()})
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
	if err := atomicfile.File(layout.CRL(), b, 0o644); err != nil {
		clear(k.has)
		t.Disk("crl.pem", err)
	}
}

// RootEvery is the interval, give or take a half, at which a host looks whether its providers of certificates
// issue below a newer root, while an SVID leads to one that is to be replaced. The half spreads
// the renewals of a cluster's hosts.
const RootEvery = 2 * time.Minute

// superseded reports whether the SVID that is delivered for a need leads to a root that another
// one is to replace.
func superseded(t *needstate.Table, n *needstate.Need) bool {
	if n.Kind != document.KindCert || n.State.State != hostdir.NeedFulfilled || len(t.Host.Manifest.Trust.Roots) < 2 {
		return false
	}
	d, err := hostdir.LoadDelivered(n.Dir.Path, t.Host.Manifest.TrustDomain)
	return err == nil && d != nil && t.Host.Roots.Superseded(d.Chain)
}

// rootsMove returns when to look again whether providers issue below a newer root; false where no
// SVID leads to a root that is to be replaced.
func rootsMove(t *needstate.Table, now time.Time) (time.Time, bool) {
	if !slices.ContainsFunc(t.Needs, func(n *needstate.Need) bool { return superseded(t, n) }) {
		return time.Time{}, false
	}
	return now.Add(RootEvery/2 + rand.N(RootEvery)), true
}

// renewBelow makes SVIDs due that lead to an older root than those which their providers issue
// now: at once, since hosts look at different times. A provider that still issues below the older
// root would answer some of the requests.
func renewBelow(t *needstate.Table, answers map[string]hostapi.CRL, now time.Time) {
	for _, n := range t.Needs {
		if n.Busy || !superseded(t, n) {
			continue
		}
		d, err := hostdir.LoadDelivered(n.Dir.Path, t.Host.Manifest.TrustDomain)
		if err != nil || d == nil {
			continue
		}
		moved := 0
		for _, p := range n.Providers {
			issuer, err := trust.ParseCertificates([]byte(answers[p].Issuer))
			switch {
			case err != nil: // it did not answer
			case t.Host.Roots.CheckIssuing(issuer[0], now) == nil && t.Host.Roots.Precedes(d.Chain, issuer[:1]):
				moved++
			default:
				moved -= len(n.Providers)
			}
		}
		if moved > 0 {
			n.RenewNow(now)
		}
	}
}
