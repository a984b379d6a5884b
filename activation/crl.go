package activation

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

// addCRL inserts a CRL that a provider returned into a host's list of CRLs, and returns the new
// list. It returns an error if the CRL is not signed by an issuing CA of the trust domain. It also
// returns an error if the number of the CRL is lower than that of the CRL it would replace, unless
// that one has expired.
func addCRL(lists []*x509.RevocationList, answer hostapi.CRL, roots *trust.Roots, now time.Time) ([]*x509.RevocationList, error) {
	is, err := openCRL(answer, roots, now)
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
	// All certificates of a CA that no longer issues lists have expired by then.
	lists = slices.DeleteFunc(lists, func(l *x509.RevocationList) bool { return now.After(l.NextUpdate.Add(trust.MaxLifetime)) })
	slices.SortFunc(lists, func(a, b *x509.RevocationList) int { return bytes.Compare(a.AuthorityKeyId, b.AuthorityKeyId) })
	return lists, nil
}

func openCRL(answer hostapi.CRL, roots *trust.Roots, now time.Time) (*x509.RevocationList, error) {
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
	// A host normally receives the first CRL together with a certificate. Otherwise it requests the
	// CRL after a random time between crlFirst and twice that time. It then requests a newer CRL at
	// least once every crlEvery. CRLs are fetched together with checkpoints of audit logs, over the
	// same connection.
	crlFirst = time.Minute
	crlEvery = 2 * time.Hour

	// crlUnknown is the time that the host waits before it asks a provider for CRLs again that did not
	// know the request.
	crlUnknown = 24 * time.Hour

	// crlPatience limits the time for fetching a CRL together with a certificate.
	crlPatience = 2 * time.Second

	// When a newer revocation list is in force on this host, the host requests the CRLs made from
	// that list within crlSoon. It asks providers that do not have these CRLs yet up to crlTries
	// more times, at intervals of crlAgain.
	crlSoon  = 30 * time.Second
	crlAgain = 10 * time.Second
	crlTries = 6
)

// crlKeeper fetches the certificate revocation lists (CRLs, RFC 5280) of all providers that issue
// certificates to a host, and keeps the host's file of CRLs up to date, for other software on the
// host. It must be used only by the goroutine that owns the table of needs.
type crlKeeper struct {
	next    time.Time
	list    int64  // number of the revocation list in force when next was set
	of      string // tag of the documents in force when next was set
	tries   int
	busy    bool
	pass    *fetch.Pass          // pass that may fetch the first CRL
	begun   *atomic.Bool         // set when a certificate of that pass fetches it
	has     map[string]string    // numbers of the CRLs that providers returned
	unknown map[string]time.Time // end of the time for which a provider without CRLs is not asked
}

// Begin starts to fetch CRLs if they are due. It returns the time at which it must be called again,
// or the zero time if nothing is planned.
func (k *crlKeeper) Begin(now time.Time, t *needstate.Table, start needstate.Start) time.Time {
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
	case list != k.list: // providers read the list every second
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

// Over returns a function that fetches the CRLs of all providers at once, even if they are not due.
// It shares the connections of the other requests in the given fetch.Pass. The function does
// nothing if CRLs are already being fetched.
func (k *crlKeeper) Over(t *needstate.Table, pass *fetch.Pass, now time.Time) func(context.Context) func() {
	if k.busy || k.next.IsZero() {
		return func(context.Context) func() { return func() {} }
	}
	return k.over(t, pass, now)
}

// Rewind moves the next fetch to an earlier time after the wall clock was set back by the given
// amount, so that the fetch is not delayed.
func (k *crlKeeper) Rewind(by time.Duration) { needstate.Rewind(by, &k.next) }

// over fetches the CRLs of all providers that issue certificates to this host, over the connections
// of a pass. It does the fetching in the returned function. That function in turn returns a
// function that stores the results.
func (k *crlKeeper) over(t *needstate.Table, pass *fetch.Pass, now time.Time) func(context.Context) func() {
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

// With returns a function that fetches the first CRL of a provider, over the connection on which
// the provider has just returned a certificate. The caller calls the function with the name of that
// provider. If several certificates are requested in the same fetch.Pass, the CRL is fetched only
// once. With returns nil if there is no CRL to fetch.
func (k *crlKeeper) With(t *needstate.Table, n *needstate.Need, pass *fetch.Pass) func(context.Context, string) func() {
	if t.Once || k.busy || n.Kind != document.KindCert || t.Host.IsNode(n.Need) || hasCRL(t) {
		return nil
	}
	if k.pass != pass {
		k.pass, k.begun = pass, new(atomic.Bool)
	}
	begun := k.begun
	return func(ctx context.Context, provider string) func() {
		if begun.Swap(true) { // fetched together with another certificate
			return func() {}
		}
		ctx, cancel := context.WithTimeout(ctx, crlPatience) // the certificate waits for it
		defer cancel()
		answer, e := pass.CRL(ctx, provider, "")
		return func() {
			if e != nil || k.busy || k.next.IsZero() || hasCRL(t) {
				return
			}
			next := k.next
			k.got(t, []string{provider}, map[string]hostapi.CRL{provider: answer}, nil)
			if len(n.Providers) > 1 {
				k.next = next // fetch those of the other providers
			}
		}
	}
}

// got stores the CRLs that providers returned, and plans the next fetch.
func (k *crlKeeper) got(t *needstate.Table, from []string, answers map[string]hostapi.CRL, failed map[string]*hostapi.Error) {
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
		if e != nil && e.Code == hostapi.CodeUnknownMethod.Name { // a provider of an older release
			k.unknown[p] = now.Add(crlUnknown)
			continue
		}
		if e != nil { // failures to connect are reported by the needs
			behind = true
			continue
		}
		behind = behind || answer.List < k.list
		if answer.CRL == "" {
			continue
		}
		added, err := addCRL(lists, answer, t.Host.Roots, now)
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

// crlRootEvery is the average interval at which a host looks for a newer root certificate while the
// cluster replaces one. The host asks its providers whether they already issue certificates below
// the newer root. The interval varies by a half, so that the hosts of a cluster do not all renew at
// the same time.
const crlRootEvery = 2 * time.Minute

// superseded reports whether the certificate delivered for a need was issued below a root that is
// being replaced.
func superseded(t *needstate.Table, n *needstate.Need) bool {
	if n.Kind != document.KindCert || n.State.State != hostdir.NeedFulfilled || len(t.Host.Manifest.Trust.Roots) < 2 {
		return false
	}
	d, err := hostdir.LoadDelivered(n.Dir.Path, t.Host.Manifest.TrustDomain)
	return err == nil && d != nil && t.Host.Roots.Superseded(d.Chain)
}

// rootsMove returns the time at which the host must next ask whether its providers issue
// certificates below a newer root. It returns false if none of the host's certificates was issued
// below a root that is being replaced.
func rootsMove(t *needstate.Table, now time.Time) (time.Time, bool) {
	if !slices.ContainsFunc(t.Needs, func(n *needstate.Need) bool { return superseded(t, n) }) {
		return time.Time{}, false
	}
	return now.Add(crlRootEvery/2 + rand.N(crlRootEvery)), true
}

// renewBelow requests new certificates when the providers have started to issue below a newer root.
// It waits as long as any provider that answered still issues below the older root, because that
// provider could receive the request. The certificates are due at once: the hosts look at different
// times, so their renewals need not be spread.
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
			case err != nil: // the provider did not answer
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
