package chains

import (
	"crypto"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
)

// TestChains checks that all four verifiers of certificate chains agree. They must accept and
// refuse the same chains for the same reasons.
func TestChains(t *testing.T) {
	m := maker{t}
	trusted := m.unconstrained()
	good := kit.OddIssuing(trusted.Root, m.key())
	by := func(change func(*x509.Certificate)) func(spiffe.ID, bool) tls.Certificate {
		i := kit.OddIssuing(trusted.Root, m.key(), change)
		return func(id spiffe.ID, _ bool) tls.Certificate { return m.leaf(i, id, m.key()) }
	}
	leaf := func(key crypto.Signer, change ...func(*x509.Certificate)) func(spiffe.ID, bool) tls.Certificate {
		return func(id spiffe.ID, _ bool) tls.Certificate { return m.leaf(good, id, key, change...) }
	}
	usage := func(u ...x509.ExtKeyUsage) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.ExtKeyUsage = u }
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	m.must(err)
	rsa1024 := m.rsa(1024)
	other := func(c *x509.Certificate) { c.URIs = []*url.URL{{Scheme: "spiffe", Host: "other.flor"}} }

	for name, c := range map[string]struct {
		chain func(id spiffe.ID, client bool) tls.Certificate
		want  string // part of the expected reason; empty if the chain is accepted
	}{
		"as issued":    {leaf(m.key()), ""},
		"key P-384":    {leaf(m.ecdsa(elliptic.P384())), ""},
		"key Ed25519":  {leaf(ed), ""},
		"key RSA-2048": {leaf(m.rsa(2048)), ""},
		"issuing CA Ed25519": {func(id spiffe.ID, _ bool) tls.Certificate {
			return m.leaf(kit.OddIssuing(trusted.Root, ed), id, m.key())
		}, ""},
		"below the root itself": {func(id spiffe.ID, _ bool) tls.Certificate {
			return m.leaf(trusted.Root, id, m.key())
		}, "no name constraint"},
		"issuing CA unconstrained":                          {by(func(c *x509.Certificate) { c.PermittedURIDomains = nil }), `issuing certificate "issuing": no name constraint, want one for demo.flor: sign it anew`},
		"issuing CA of another trust domain, unconstrained": {by(func(c *x509.Certificate) { other(c); c.PermittedURIDomains = nil }), "no name constraint"},
		"issuing CA of another trust domain":                {by(func(c *x509.Certificate) { other(c); c.PermittedURIDomains = []string{"other.flor"} }), "its name constraint is for other.flor, want a critical one for demo.flor"},
		"issuing CA of both":                                {by(func(c *x509.Certificate) { c.PermittedURIDomains = []string{"demo.flor", "other.flor"} }), "its name constraint is for demo.flor other.flor"},
		"issuing CA of everything":                          {by(func(c *x509.Certificate) { c.PermittedURIDomains = []string{"flor"} }), "its name constraint is for flor"},
		"constraint that is not critical":                   {by(func(c *x509.Certificate) { c.PermittedDNSDomainsCritical = false }), "want a critical one"},
		"issuing CA for code signing":                       {by(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning} }), "lacks the extended key usage"},
		"issuing certificate of no CA":                      {by(func(c *x509.Certificate) { c.IsCA, c.PermittedURIDomains = false, nil }), "not the certificate of a CA"},
		"issuing CA RSA-1024": {func(id spiffe.ID, _ bool) tls.Certificate {
			return m.leaf(kit.OddIssuing(trusted.Root, rsa1024), id, m.key())
		}, "key is RSA of 1024 bits"},
		"a stranger's": {func(id spiffe.ID, _ bool) tls.Certificate {
			return m.leaf(kit.OddIssuing(kit.NewCA().Root, m.key()), id, m.key())
		}, "unknown authority"},
		"SVID of another trust domain": {func(id spiffe.ID, _ bool) tls.Certificate {
			there, err := spiffe.ParseID("spiffe://other.flor/" + id.Short())
			m.must(err)
			return m.leaf(good, there, m.key())
		}, "want one of trust domain demo.flor"},
		"no digital signature": {leaf(m.key(), func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageKeyEncipherment }), "lacks the key usage digitalSignature"},
		"no key usage":         {leaf(m.key(), func(c *x509.Certificate) { c.KeyUsage = 0 }), "lacks the key usage digitalSignature"},
		"code signing":         {leaf(m.key(), usage(x509.ExtKeyUsageCodeSigning)), "lacks the extended key usage"},
		"no extended usage":    {leaf(m.key(), usage()), "lacks the extended key usage"},
		"any extended usage":   {leaf(m.key(), usage(x509.ExtKeyUsageAny)), "lacks the extended key usage"},
		"for this side alone": {func(id spiffe.ID, client bool) tls.Certificate {
			return m.leaf(good, id, m.key(), usage(side(client)))
		}, ""},
		"for the other side alone": {func(id spiffe.ID, client bool) tls.Certificate {
			return m.leaf(good, id, m.key(), usage(side(!client)))
		}, "lacks the extended key usage"},
		"key RSA-1024":          {leaf(rsa1024), "key is RSA of 1024 bits, want"},
		"key RSA-8192":          {leaf(kit.RSA8192()), "key is RSA of 8192 bits, want"},
		"key P-521":             {leaf(m.ecdsa(elliptic.P521())), "key is ECDSA P-521, want"},
		"a CA":                  {leaf(m.key(), func(c *x509.Certificate) { c.IsCA, c.KeyUsage = true, x509.KeyUsageDigitalSignature }), "it is a CA's"},
		"may sign certificates": {leaf(m.key(), func(c *x509.Certificate) { c.KeyUsage |= x509.KeyUsageCRLSign }), "it is a CA's"},
		"no URI":                {leaf(m.key(), kit.URIs()), "0 URI SANs, want exactly one"},
		"no SAN":                {leaf(m.key(), func(c *x509.Certificate) { c.URIs = nil }), "0 URI SANs, want exactly one"},
		"two URIs": {func(id spiffe.ID, _ bool) tls.Certificate {
			return m.leaf(good, id, m.key(), kit.URIs(id.String(), "https://demo.flor/"))
		}, "2 URI SANs, want exactly one"},
		"empty fragment": {func(id spiffe.ID, _ bool) tls.Certificate {
			return m.leaf(good, id, m.key(), kit.URIs(id.String()+"#"))
		}, "path segment characters"},
		"upper-case scheme": {func(id spiffe.ID, _ bool) tls.Certificate {
			return m.leaf(good, id, m.key(), kit.URIs(strings.Replace(id.String(), "spiffe:", "SPIFFE:", 1)))
		}, "scheme"},
		"expired": {leaf(m.key(), func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(-time.Minute)
		}), "renew it or set the clock"},
		"not valid yet": {leaf(m.key(), func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = time.Now().Add(time.Minute), time.Now().Add(time.Hour)
		}), "renew it or set the clock"},
		"five certificates": {func(id spiffe.ID, _ bool) tls.Certificate {
			c := m.leaf(good, id, m.key())
			c.Certificate = append(c.Certificate, good.Certificate.Raw, good.Certificate.Raw, good.Certificate.Raw)
			return c
		}, "chain of 5 certificates, want at most 4"},
		"11 look-alike issuers RSA-8192": {func(id spiffe.ID, _ bool) tls.Certificate {
			c := m.leaf(good, id, m.key())
			c.Certificate = append(c.Certificate[:1], kit.LookAlikes(11, good)...)
			return c
		}, "chain of 12 certificates, want at most 4"},
		"3 look-alike issuers RSA-8192": {func(id spiffe.ID, _ bool) tls.Certificate {
			c := m.leaf(good, id, m.key())
			c.Certificate = append(c.Certificate[:1], kit.LookAlikes(3, good)...)
			return c
		}, "key is RSA of 8192 bits, want"},
	} {
		t.Run(name, func(t *testing.T) { attack(t, trusted, c.chain, c.want) })
	}

	// QUIC accepts at most 16 KiB of handshake data.
	long := func(id spiffe.ID, _ bool) tls.Certificate {
		return m.leaf(good, id, m.key(), func(c *x509.Certificate) {
			c.ExtraExtensions = append(c.ExtraExtensions, pkix.Extension{Id: asn1.ObjectIdentifier{1, 2, 3}, Value: make([]byte, 17<<10)})
		})
	}
	many := func(id spiffe.ID, _ bool) tls.Certificate {
		c := m.leaf(good, id, m.key())
		c.Certificate = append(c.Certificate[:1], kit.LookAlikes(90, good)...)
		return c
	}
	for _, v := range verifiers(t, trusted)[:2] {
		for want, chain := range map[string]func(spiffe.ID, bool) tls.Certificate{
			"bytes, want at most 16384":                long,
			"chain of 91 certificates, want at most 4": many,
		} {
			if got := v.present(t, chain(v.peer, v.client)); !strings.Contains(got, want) {
				t.Errorf("%s: refused with %q, want …%s…", v.name, got, want)
			}
		}
	}
}

func attack(t *testing.T, ca *kit.CA, chain func(spiffe.ID, bool) tls.Certificate, want string) {
	for _, v := range verifiers(t, ca) {
		got := v.present(t, chain(v.peer, v.client))
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: refused with %q, want %q", v.name, got, want)
		}
	}
}

func side(client bool) x509.ExtKeyUsage {
	if client {
		return x509.ExtKeyUsageClientAuth
	}
	return x509.ExtKeyUsageServerAuth
}
