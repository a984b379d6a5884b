package attacks

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/api"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/local"
)

// TestCertificates attacks p and the forwarder of b with what the cluster's own root
// signed, for something else, and with chains that cost much.
func TestCertificates(t *testing.T) {
	unconstrained := func(c *x509.Certificate) { c.PermittedURIDomains = nil }
	foreign := func(c *x509.Certificate) { c.PermittedURIDomains = []string{"other.flor"} }
	untrusted := local.Decision{Code: api.CodeUntrusted, Message: "name constraint"}
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
			name: "90 look-alike issuers at the provider",
			try: func(t *testing.T, c *cluster) error {
				return atProvider(t, c, lookAlikes(kit.ID("node/b"), 90))
			},
			refusal: "unavailable", // the connection ends in the handshake, and is nobody's
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

// issue makes an SVID below a CA that the operator's root signed, changed.
func (c *cluster) issue(t *testing.T, id florete.ID, change func(*x509.Certificate)) *tls.Certificate {
	t.Helper()
	root, err := ca.Load(c.Path("operator", "ca.crt"), c.Path("operator", "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	return (&kit.CA{Issuing: kit.OddIssuing(root, kit.NewKey(), change)}).Issue(id, time.Hour)
}

// lookAlikes is an SVID with n CAs behind it, each of which could have signed it.
func lookAlikes(id florete.ID, n int) *tls.Certificate {
	by := kit.NewCA()
	svid := by.Issue(id, time.Hour)
	svid.Certificate = append(svid.Certificate[:1], kit.LookAlikes(n, by.Issuing)...)
	return svid
}
