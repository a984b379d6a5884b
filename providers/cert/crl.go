package cert

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"math/big"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/journal"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/providers/server"
)

const (
	// crlLifetime is the time for which third-party software accepts a CRL. crlRenewed is the age
	// at which a CRL is signed again at the latest. CRLs are signed even after the revocation list
	// has expired, because hosts continue to use that list.
	crlLifetime = 7 * 24 * time.Hour
	crlRenewed  = 24 * time.Hour

	// crlLook is the interval at which issued certificates are compared with the revocation list.
	// After the list has changed, they are compared once more after crlSoon, because decisions made
	// under the former list may be committed later.
	crlLook = time.Hour
	crlSoon = time.Minute
)

// reasonHold is the reason code certificateHold in a CRL (RFC 5280 section 5.3.1).
const reasonHold = 6

// crl is the newest certificate revocation list and the inputs from which it was made.
type crl struct {
	*x509.RevocationList
	pem    []byte
	number int64 // number of the revocation list
	by     *x509.Certificate
	next   time.Time // time of the next comparison
}

// Run does the regular work of the Issuer until ctx ends: it records the SVIDs that the Issuer
// issues to itself, signs the certificate revocation list when it is due, and deletes the records
// of expired certificates. Run always returns nil.
func (i *Issuer) Run(ctx context.Context, ready func()) error {
	ready()
	var forget time.Time
	journal.Every(ctx, time.Second, slog.Default(), func(ctx context.Context) error {
		now := time.Now()
		err := errors.Join(i.recordSelf(ctx), i.keepCRL(ctx, now))
		if !now.Before(forget) {
			forget = now.Add(crlLook)
			err = errors.Join(err, i.forgetEnded(ctx, now))
		}
		return err
	}, "what is issued is not kept as it should be, until the next try")
	return nil
}

// keepCRL signs a new CRL if the revocation list or the issuing certificate has changed, or if the
// newest CRL is not from today.
func (i *Issuer) keepCRL(ctx context.Context, now time.Time) error {
	if i.CRL == "" {
		return nil
	}
	a, err := i.Authority()
	if err != nil { // which requests report
		return nil
	}
	last := i.crl.Load()
	if last == nil {
		if last, err = readCRL(i.CRL, a); err != nil {
			return err
		}
	}
	list := i.revoked()
	changed := list.InForce() != last.number || last.by == nil || !last.by.Equal(a.Certificate)
	if !changed && now.Before(last.next) {
		return nil
	}
	is := &crl{RevocationList: last.RevocationList, number: list.InForce(), by: a.Certificate, next: now.Add(crlLook)}
	if changed {
		is.next = now.Add(crlSoon)
	}
	entries, err := i.revokedEntries(ctx, list, a, last.RevocationList, now)
	if err != nil {
		return err
	}
	number := big.NewInt(now.Unix()) // higher than all earlier numbers, even after a restore
	if l := last.RevocationList; l != nil {
		age := now.Sub(l.ThisUpdate) - trust.Backdated
		same := slices.EqualFunc(entries, l.RevokedCertificateEntries, func(a, b x509.RevocationListEntry) bool {
			return a.SerialNumber.Cmp(b.SerialNumber) == 0 && a.ReasonCode == b.ReasonCode
		})
		if same && age >= 0 && age < crlRenewed {
			is.pem = trust.EncodeCRLs(l)
			i.crl.Store(is)
			return nil
		}
		if l.Number.Cmp(number) >= 0 {
			number.Add(l.Number, big.NewInt(1))
		}
	}
	if is.RevocationList, err = a.SignCRL(entries, number, crlLifetime, now); err != nil {
		return err
	}
	is.pem = trust.EncodeCRLs(is.RevocationList)
	if err := atomicfile.File(i.CRL, is.pem, 0o644); err != nil {
		return err
	}
	i.crl.Store(is)
	return nil
}

// revokedEntries returns the entries of a CRL for an issuing CA. There is an entry for each SVID of
// that CA that the revocation list revokes, and for every other serial number on the list. Entries
// that were in the last CRL keep their time.
func (i *Issuer) revokedEntries(ctx context.Context, list *trust.Revocations, a *ca.Authority, last *x509.RevocationList, now time.Time) (entries []x509.RevocationListEntry, err error) {
	if list == nil {
		return nil, nil
	}
	since := map[string]time.Time{}
	if last != nil {
		for _, e := range last.RevokedCertificateEntries {
			since[e.SerialNumber.Text(16)] = e.RevocationTime
		}
	}
	found := map[string]bool{}
	add := func(serial string, reason int) {
		n, ok := new(big.Int).SetString(serial, 16)
		if !ok || found[serial] {
			return
		}
		found[serial] = true
		at, before := since[serial]
		if !before {
			at = list.Signed.UTC()
		}
		entries = append(entries, x509.RevocationListEntry{SerialNumber: n, RevocationTime: at, ReasonCode: reason})
	}
	by := hex.EncodeToString(a.Certificate.SubjectKeyId)
	err = i.issued(ctx, now.Add(-keptAfter), func(c trust.Issued) {
		var revoked *trust.RevokedError
		if c.Issuer != by || !errors.As(list.CheckLeaf(c), &revoked) {
			return
		}
		reason := 0
		if revoked.Suspended {
			reason = reasonHold
		}
		add(c.Serial, reason)
	})
	for _, c := range list.Certificates {
		add(c.Serial, 0)
	}
	slices.SortFunc(entries, func(a, b x509.RevocationListEntry) int { return a.SerialNumber.Cmp(b.SerialNumber) })
	return entries, err
}

// readCRL reads the CRL that an earlier process signed. It returns nil if there is no CRL, or if
// another issuing CA has signed it.
func readCRL(path string, a *ca.Authority) (*crl, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &crl{}, nil
	}
	if err != nil {
		return nil, err
	}
	lists, err := trust.ParseCRLs(b)
	if err != nil || len(lists) != 1 || !bytes.Equal(lists[0].AuthorityKeyId, a.Certificate.SubjectKeyId) || lists[0].CheckSignatureFrom(a.Certificate) != nil {
		return &crl{}, nil
	}
	return &crl{RevocationList: lists[0], pem: b}, nil
}

// Routes returns the HTTP handler from which nodes fetch the certificate revocation list, for
// software that needs one. Callers need the SVID of a node. Requests leave no audit rows.
func (i *Issuer) Routes(s *server.Server) map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{"GET " + hostapi.PathCRL(Name): func(w http.ResponseWriter, r *http.Request) {
		a := s.Request(r)
		a.Reply(w, r, a.Identify(r, false), func() (any, server.Change, error) {
			c, err := i.newestCRL(r.URL.Query().Get("has"))
			return c, server.Change{Unrecorded: true}, err
		})
	}}
}

// newestCRL returns the newest CRL. The argument has is the number of the CRL that the caller has.
// If it is the newest, the content is left out.
func (i *Issuer) newestCRL(has string) (hostapi.CRL, error) {
	l := i.crl.Load()
	if l == nil {
		return hostapi.CRL{}, hostapi.Errorf(hostapi.CodeUnavailable, "there is no CRL yet")
	}
	is := hostapi.CRL{Number: l.Number.Text(16), List: l.number, Issuer: string(ca.EncodeCertificates(l.by))}
	if is.Number != has {
		is.CRL = string(l.pem)
	}
	return is, nil
}
