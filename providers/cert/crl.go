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
	// at which it is signed again at the latest. When the revocation list itself expires, its CRLs
	// continue to be signed, as hosts continue to use it.
	crlLifetime = 7 * 24 * time.Hour
	crlRenewed  = 24 * time.Hour

	// crlLook is the interval at which issued certificates are compared with the revocation list.
	// crlSoon is the delay of one more comparison after the list changed, since earlier decisions
	// may be committed later.
	crlLook = time.Hour
	crlSoon = time.Minute
)

// reasonHold is the reason code certificateHold (RFC 5280 section 5.3.1).
const reasonHold = 6

// crl is the newest certificate revocation list, with the inputs from which it was made.
type crl struct {
	*x509.RevocationList
	pem    []byte
	number int64 // of the revocation list
	by     *x509.Certificate
	next   time.Time // when to look again
}

// Run maintains the record of issued certificates and the CRL until ctx ends.
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

// keepCRL signs a CRL unless the newest one belongs to the revocation list in force, the issuing
// certificate, and today.
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
	number := big.NewInt(now.Unix()) // above those of before, whatever was restored
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

// revokedEntries returns the entries of a CRL: the SVIDs of an issuing CA that a revocation list
// revokes, and all other serial numbers on that list. Entries of the last CRL keep their time.
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

// readCRL reads the CRL of an earlier process, or nil if there is none or it belongs to another
// issuing CA.
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

// Routes returns the endpoint of the CRL, for nodes that keep it for software on them. Reading it
// leaves no audit row.
func (i *Issuer) Routes(s *server.Server) map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{"GET " + hostapi.PathCRL(Name): func(w http.ResponseWriter, r *http.Request) {
		a := s.Request(r)
		a.Reply(w, r, a.Identify(r, false), func() (any, server.Change, error) {
			c, err := i.newestCRL(r.URL.Query().Get("has"))
			return c, server.Change{Unrecorded: true}, err
		})
	}}
}

// newestCRL returns the newest CRL, without its content if the caller has that number.
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
