package kit

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/tls"
	"encoding/pem"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/spiffebundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/ca"
)

// age is the age of the certificates of a new CA.
const age = 30 * 24 * time.Hour

// CA is the certificate authority of a test: the root of a trust domain and the issuing CA of one
// provider. Their certificates are like those that florctl ca creates.
type CA struct {
	Root, Issuing *ca.Authority
}

// NewCA creates a CA for the trust domain Domain.
func NewCA() *CA { return NewCAOf(Domain) }

// NewCAOf creates a CA for the given trust domain.
func NewCAOf(domain string) *CA {
	root := must(ca.NewRoot(domain, time.Now().Add(-age)))
	return (&CA{Root: root}).Beside()
}

// Beside returns a CA with the same root and a new issuing CA, for a second provider in the same
// trust domain.
func (c *CA) Beside() *CA {
	key := NewKey()
	return &CA{c.Root, c.issuing(key, ca.IssuingLifetime-age)}
}

// Renew replaces the issuing certificate with a new one for the same key, which is valid for the
// given lifetime from now.
func (c *CA) Renew(lifetime time.Duration) { c.Issuing = c.issuing(c.Issuing.Key, lifetime) }

func (c *CA) issuing(key crypto.Signer, lifetime time.Duration) *ca.Authority {
	csr := must(ca.NewIssuingCSR(c.Root.TrustDomain(), key))
	return &ca.Authority{Certificate: must(c.Root.SignIssuing(csr, lifetime+age, time.Now().Add(-age))), Key: key}
}

// RootPEM returns the root certificate in PEM, as documents contain it.
func (c *CA) RootPEM() string { return string(ca.EncodeCertificates(c.Root.Certificate)) }

// Roots returns Roots that trust only the root of c.
func (c *CA) Roots() *trust.Roots {
	return must(trust.NewRoots(c.Root.TrustDomain(), []string{c.RootPEM()}))
}

// Bundle returns the SPIFFE bundle of the trust domain as JSON, with the given sequence number and
// refresh hint. It contains the root of this CA and the roots of the others. A bundle endpoint
// serves such a bundle.
func (c *CA) Bundle(sequence uint64, refresh time.Duration, others ...*CA) []byte {
	b := spiffebundle.New(spiffeid.RequireTrustDomainFromString(c.Root.TrustDomain()))
	for _, c := range append(others, c) {
		b.AddX509Authority(c.Root.Certificate)
	}
	b.SetSequenceNumber(sequence)
	b.SetRefreshHint(refresh)
	return must(b.Marshal())
}

// Issue issues an SVID that is valid for the given lifetime from now. If the lifetime is negative,
// the SVID has already expired.
func (c *CA) Issue(id spiffe.ID, lifetime time.Duration) *tls.Certificate {
	now := time.Now()
	return c.IssueAt(id, now.Add(min(lifetime, 0)), now.Add(lifetime))
}

// IssueAt issues an SVID that is valid from the time now until the time until. Both may be in the
// past or in the future.
func (c *CA) IssueAt(id spiffe.ID, now, until time.Time) *tls.Certificate {
	key := NewKey()
	leaf := must(c.Issuing.Issue(ca.SVID{ID: id, Key: key.Public(), Until: until}, now))
	return &tls.Certificate{Certificate: [][]byte{leaf.Raw, c.Issuing.Certificate.Raw}, PrivateKey: key, Leaf: leaf}
}

// Deliver issues an SVID and writes it, with its key, to the directory of a need, in the form in
// which activation writes an SVID for a host.
func (c *CA) Deliver(need string, id spiffe.ID, lifetime time.Duration) *tls.Certificate {
	svid := c.Issue(id, lifetime)
	chain, key := EncodeSVID(svid)
	Swap(hostdir.Current(need), map[string][]byte{
		hostdir.FileSVID: chain, hostdir.FileKey: key, hostdir.FileBundle: []byte(c.RootPEM()),
	})
	return svid
}

// EncodeSVID returns the certificate chain and the private key of an SVID in PEM. They have the
// form of the two files that activation writes.
func EncodeSVID(svid *tls.Certificate) (chain, key []byte) {
	for _, der := range svid.Certificate {
		chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	return chain, must(ca.EncodeKey(svid.PrivateKey.(crypto.Signer)))
}

// NewKey generates a key pair for an SVID or a CA.
func NewKey() *ecdsa.PrivateKey { return must(ca.NewKey()) }

// CSR returns a certificate request in PEM for an SVID with the given SPIFFE ID. The key signs the
// request.
func CSR(id spiffe.ID, key crypto.Signer) string { return string(must(ca.NewCSR(id, key))) }
