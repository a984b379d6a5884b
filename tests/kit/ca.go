package kit

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/tls"
	"encoding/pem"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/ca"
)

// age is how long ago the certificates of a CA were signed.
const age = 30 * 24 * time.Hour

// CA is the root of Domain and a provider's issuing CA below it, as florctl makes them.
type CA struct {
	Root, Issuing *ca.Authority
}

// NewCA makes a CA that nobody trusts yet.
func NewCA() *CA {
	root := must(ca.NewRoot(Domain, time.Now().Add(-age)))
	return (&CA{Root: root}).Beside()
}

// Beside is the issuing CA of another provider, below the same root.
func (c *CA) Beside() *CA {
	key := NewKey()
	return &CA{c.Root, c.issuing(key, ca.IssuingLifetime-age)}
}

// Renew signs the issuing certificate anew, valid until now+lifetime.
func (c *CA) Renew(lifetime time.Duration) { c.Issuing = c.issuing(c.Issuing.Key, lifetime) }

func (c *CA) issuing(key crypto.Signer, lifetime time.Duration) *ca.Authority {
	csr := must(ca.NewIssuingCSR(Domain, key))
	return &ca.Authority{Certificate: must(c.Root.SignIssuing(csr, lifetime+age, time.Now().Add(-age))), Key: key}
}

// RootPEM is the root as documents have it.
func (c *CA) RootPEM() string { return string(ca.EncodeCertificates(c.Root.Certificate)) }

// Roots is what trusts the CA alone.
func (c *CA) Roots() *florete.Roots { return must(florete.NewRoots(Domain, []string{c.RootPEM()})) }

// Issue makes an SVID, valid until now+lifetime, which may be negative.
func (c *CA) Issue(id florete.ID, lifetime time.Duration) *tls.Certificate {
	now := time.Now()
	return c.IssueAt(id, now.Add(min(lifetime, 0)), now.Add(lifetime))
}

// IssueAt is Issue by another clock, which shows now.
func (c *CA) IssueAt(id florete.ID, now, until time.Time) *tls.Certificate {
	key := NewKey()
	leaf := must(c.Issuing.Issue(ca.SVID{ID: id, Key: key.Public(), Until: until}, now))
	return &tls.Certificate{Certificate: [][]byte{leaf.Raw, c.Issuing.Certificate.Raw}, PrivateKey: key, Leaf: leaf}
}

// Deliver issues an SVID and puts it in the directory of its need, as activation does.
func (c *CA) Deliver(need string, id florete.ID, lifetime time.Duration) *tls.Certificate {
	svid := c.Issue(id, lifetime)
	chain, key := EncodeSVID(svid)
	Swap(florete.Current(need), map[string][]byte{
		florete.FileSVID: chain, florete.FileKey: key, florete.FileBundle: []byte(c.RootPEM()),
	})
	return svid
}

// EncodeSVID is an SVID as activation delivers it.
func EncodeSVID(svid *tls.Certificate) (chain, key []byte) {
	for _, der := range svid.Certificate {
		chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	return chain, must(ca.EncodeKey(svid.PrivateKey.(crypto.Signer)))
}

// NewKey makes a key pair.
func NewKey() *ecdsa.PrivateKey { return must(ca.NewKey()) }

// CSR is a request of the SVID of id for a key, as PEM.
func CSR(id florete.ID, key crypto.Signer) string { return string(must(ca.NewCSR(id, key))) }
