package attacks

import (
	"crypto/tls"
	"crypto/x509"
	"net/url"
	"testing"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/local"
)

// TestCertificates attacks provider p and the forwarder of host b with certificates. Some were
// signed by the root of the cluster for another purpose. Others are chains that are expensive to
// verify.
func TestCertificates(t *testing.T) {
	unconstrained := func(c *x509.Certificate) { c.PermittedURIDomains = nil }
	foreign := func(c *x509.Certificate) { c.PermittedURIDomains = []string{"other.flor"} }
	wide := func(c *x509.Certificate) { c.PermittedURIDomains = append(c.PermittedURIDomains, "other.flor") }
	below := func(c *x509.Certificate) { c.PermittedURIDomains = []string{"." + kit.Domain} }
	optional := func(c *x509.Certificate) { c.PermittedDNSDomainsCritical = false }
	untrusted := local.Decision{Code: hostapi.CodeUntrusted.Name, Message: "name constraint"}
	atProvider := func(t *testing.T, c *cluster, svid *tls.Certificate) error {
		client := c.client(t, c.b, "config")
		client.SVID = svid
		_, err := client.Artifact(t.Context())
		return err
	}
	run(t, []attack{
		{
			name: "node certificate by an issuing CA of another trust domain, same root",
			try: func(t *testing.T, c *cluster) error {
				return atProvider(t, c, c.issue(t, kit.ID("node/b"), foreign))
			},
			refusal: "its name constraint is for other.flor",
			row:     untrusted,
		},
		{
			name: "node certificate by an issuing CA of no trust domain, same root",
			try: func(t *testing.T, c *cluster) error {
				return atProvider(t, c, c.issue(t, kit.ID("node/b"), unconstrained))
			},
			refusal: "no name constraint",
			row:     untrusted,
		},
		{
			name: "alice by an issuing CA of another trust domain, same root",
			try: func(t *testing.T, c *cluster) error {
				return c.knock(t.Context(), "echo", c.issue(t, kit.ID("user/alice"), foreign))
			},
			refusal: "CRYPTO_ERROR",
		},
		{
			name: "alice by an issuing CA of no trust domain, same root",
			try: func(t *testing.T, c *cluster) error {
				return c.knock(t.Context(), "echo", c.issue(t, kit.ID("user/alice"), unconstrained))
			},
			refusal: "CRYPTO_ERROR",
		},
		{
			name: "node certificate by an issuing CA of two trust domains, same root",
			try: func(t *testing.T, c *cluster) error {
				return atProvider(t, c, c.issue(t, kit.ID("node/b"), wide))
			},
			refusal: "its name constraint is for demo.flor other.flor, want a critical one for demo.flor",
			row:     untrusted,
		},
		{
			name: "node certificate by an issuing CA of what is below the trust domain",
			try: func(t *testing.T, c *cluster) error {
				return atProvider(t, c, c.issue(t, kit.ID("node/b"), below))
			},
			refusal: "its name constraint is for .demo.flor, want",
			row:     untrusted,
		},
		{
			name: "node certificate by an issuing CA whose constraint verifiers may ignore",
			try: func(t *testing.T, c *cluster) error {
				return atProvider(t, c, c.issue(t, kit.ID("node/b"), optional))
			},
			refusal: "want a critical one",
			row:     untrusted,
		},
		{
			name: "node certificate that is a CA's",
			try: func(t *testing.T, c *cluster) error {
				return atProvider(t, c, c.leafCA(t, kit.ID("node/b")))
			},
			refusal: "it is a CA's, which is no SVID",
			row:     local.Decision{Code: hostapi.CodeUntrusted.Name, Message: "it is a CA's"},
		},
		{
			name: "alice by a certificate that is a CA's",
			try: func(t *testing.T, c *cluster) error {
				return c.knock(t.Context(), "echo", c.leafCA(t, kit.ID("user/alice")))
			},
			refusal: "CRYPTO_ERROR",
		},
		{
			name: "node certificate of a foreign CA with equal names and key identifiers",
			try: func(t *testing.T, c *cluster) error {
				return atProvider(t, c, c.equalNames(t, kit.ID("node/b")))
			},
			refusal: "untrusted",
			row:     local.Decision{Code: hostapi.CodeUntrusted.Name, Message: "signed by unknown authority"},
		},
		{
			name: "alice of a foreign CA with equal names and key identifiers",
			try: func(t *testing.T, c *cluster) error {
				return c.knock(t.Context(), "echo", c.equalNames(t, kit.ID("user/alice")))
			},
			refusal: "CRYPTO_ERROR",
		},
		{
			name: "90 look-alike issuers at the provider",
			try: func(t *testing.T, c *cluster) error {
				return atProvider(t, c, lookAlikes(kit.ID("node/b"), 90))
			},
			refusal: "unavailable", // the handshake fails, so the connection belongs to no caller
		},
		{
			name: "11 look-alike issuers at the forwarder",
			try: func(t *testing.T, c *cluster) error {
				return c.knock(t.Context(), "echo", lookAlikes(kit.ID("user/alice"), 11))
			},
			refusal: "CRYPTO_ERROR",
		},
		{
			name: "a root beside the flake",
			try: func(t *testing.T, c *cluster) error {
				_, err := c.Run(t.Context(), "florctl", "ca", "init", "--trust-domain", "next.flor", "--out", c.Path("cluster", "next"))
				return err
			},
			refusal: "a private key in the tree of",
		},
	})
}

// root returns the operator's root CA, with which an attack issues certificates.
func (c *cluster) root(t *testing.T) *ca.Authority {
	t.Helper()
	root, err := ca.Load(c.Path("operator", "ca.crt"), c.Path("operator", "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// issue issues an SVID below an intermediate CA. The operator's root has signed the certificate of
// that CA after the function change altered it.
func (c *cluster) issue(t *testing.T, id spiffe.ID, change func(*x509.Certificate)) *tls.Certificate {
	t.Helper()
	return (&kit.CA{Issuing: kit.OddIssuing(c.root(t), kit.NewKey(), change)}).Issue(id, time.Hour)
}

// leafCA returns a certificate of an identity, issued by the operator's root, that is also a CA. It
// could sign other certificates.
func (c *cluster) leafCA(t *testing.T, id spiffe.ID) *tls.Certificate {
	t.Helper()
	u, err := url.Parse(id.String())
	if err != nil {
		t.Fatal(err)
	}
	leaf := kit.OddIssuing(c.root(t), kit.NewKey(), func(c *x509.Certificate) {
		c.URIs, c.KeyUsage = []*url.URL{u}, c.KeyUsage|x509.KeyUsageDigitalSignature
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	})
	return &tls.Certificate{Certificate: [][]byte{leaf.Certificate.Raw}, PrivateKey: leaf.Key, Leaf: leaf.Certificate}
}

// equalNames returns an SVID from a false CA. The CA's root has the same names as the operator's
// root but another key. The false root is part of the chain.
func (c *cluster) equalNames(t *testing.T, id spiffe.ID) *tls.Certificate {
	t.Helper()
	key, template := kit.NewKey(), *c.root(t).Certificate
	template.PublicKey, template.SignatureAlgorithm = nil, 0
	root := &ca.Authority{Certificate: kit.SelfSigned(&template, key), Key: key}
	svid := (&kit.CA{Issuing: kit.OddIssuing(root, kit.NewKey())}).Issue(id, time.Hour)
	svid.Certificate = append(svid.Certificate, root.Certificate.Raw)
	return svid
}

// lookAlikes returns an SVID with a chain of n CA certificates, each of which could be its issuer.
// Verifying such a chain is expensive.
func lookAlikes(id spiffe.ID, n int) *tls.Certificate {
	by := kit.NewCA()
	svid := by.Issue(id, time.Hour)
	svid.Certificate = append(svid.Certificate[:1], kit.LookAlikes(n, by.Issuing)...)
	return svid
}
