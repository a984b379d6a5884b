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

// CA is the root of a trust domain and the issuing CA of one provider below it, as florctl creates
// them.
type CA struct {
	Root, Issuing *ca.Authority
}

// NewCA creates a CA of Domain.
func NewCA() *CA { return NewCAOf(Domain) }

// NewCAOf creates a CA of another trust domain.
func NewCAOf(domain string) *CA {
	root := must(ca.NewRoot(domain, time.Now().Add(-age)))
	return (&CA{Root: root}).Beside()
}

// Beside creates the issuing CA of another provider below the same root.
func (c *CA) Beside() *CA {
	key := NewKey()
	return &CA{c.Root, c.issuing(key, ca.IssuingLifetime-age)}
}

// Renew signs the issuing certificate anew, valid until now+lifetime.
func (c *CA) Renew(lifetime time.Duration) { c.Issuing = c.issuing(c.Issuing.Key, lifetime) }

func (c *CA) issuing(key crypto.Signer, lifetime time.Duration) *ca.Authority {
	csr := must(ca.NewIssuingCSR(c.Root.TrustDomain(), key))
	return &ca.Authority{Certificate: must(c.Root.SignIssuing(csr, lifetime+age, time.Now().Add(-age))), Key: key}
}

// RootPEM returns the root certificate in PEM, as in documents.
func (c *CA) RootPEM() string { return string(ca.EncodeCertificates(c.Root.Certificate)) }

// Roots returns trust in this CA alone.
func (c *CA) Roots() *trust.Roots {
	return must(trust.NewRoots(c.Root.TrustDomain(), []string{c.RootPEM()}))
}

// Bundle returns the SPIFFE bundle with the root of c and those of others, in the format of bundle
// endpoints.
func (c *CA) Bundle(sequence uint64, refresh time.Duration, others ...*CA) []byte {
	b := spiffebundle.New(spiffeid.RequireTrustDomainFromString(c.Root.TrustDomain()))
	for _, c := range append(others, c) {
		b.AddX509Authority(c.Root.Certificate)
	}
	b.SetSequenceNumber(sequence)
	b.SetRefreshHint(refresh)
	return must(b.Marshal())
}

// Issue issues an SVID, valid until now+lifetime. A negative lifetime makes an expired one.
func (c *CA) Issue(id spiffe.ID, lifetime time.Duration) *tls.Certificate {
	now := time.Now()
	return c.IssueAt(id, now.Add(min(lifetime, 0)), now.Add(lifetime))
}

// IssueAt is like Issue with another clock, which shows now.
func (c *CA) IssueAt(id spiffe.ID, now, until time.Time) *tls.Certificate {
	key := NewKey()
	leaf := must(c.Issuing.Issue(ca.SVID{ID: id, Key: key.Public(), Until: until}, now))
	return &tls.Certificate{Certificate: [][]byte{leaf.Raw, c.Issuing.Certificate.Raw}, PrivateKey: key, Leaf: leaf}
}

// Deliver issues an SVID and puts it into the directory of its need, as activation does.
func (c *CA) Deliver(need string, id spiffe.ID, lifetime time.Duration) *tls.Certificate {
	svid := c.Issue(id, lifetime)
	chain, key := EncodeSVID(svid)
	Swap(hostdir.Current(need), map[string][]byte{
		hostdir.FileSVID: chain, hostdir.FileKey: key, hostdir.FileBundle: []byte(c.RootPEM()),
	})
	return svid
}

// EncodeSVID encodes an SVID in the files that activation delivers.
func EncodeSVID(svid *tls.Certificate) (chain, key []byte) {
	for _, der := range svid.Certificate {
		chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	return chain, must(ca.EncodeKey(svid.PrivateKey.(crypto.Signer)))
}

// NewKey generates a key pair.
func NewKey() *ecdsa.PrivateKey { return must(ca.NewKey()) }

// CSR returns a certificate signing request for the SVID of id, in PEM.
func CSR(id spiffe.ID, key crypto.Signer) string { return string(must(ca.NewCSR(id, key))) }
