package attacks

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"testing"
	"time"

	"github.com/florete/florete/providers/api"
	"github.com/florete/florete/providers/ca"
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
				return atProvider(t, c, c.issuing(t, foreign).issue(t, id(t, "node/b")))
			},
			refusal: "its name constraint is for other.flor",
			row:     untrusted,
		},
		{
			name: "node certificate by an issuing CA of no trust domain, same root",
			try: func(t *testing.T, c *cluster) error {
				return atProvider(t, c, c.issuing(t, unconstrained).issue(t, id(t, "node/b")))
			},
			refusal: "no name constraint",
			row:     untrusted,
		},
		{
			name: "alice by an issuing CA of another trust domain, same root",
			try: func(t *testing.T, c *cluster) error {
				return c.knock(t.Context(), "echo", c.issuing(t, foreign).issue(t, id(t, "user/alice")))
			},
			refusal: "CRYPTO_ERROR",
		},
		{
			name: "90 look-alike issuers at the provider",
			try: func(t *testing.T, c *cluster) error {
				return atProvider(t, c, lookAlikes(t, newCA(t, nil).issue(t, id(t, "node/b")), 90))
			},
			refusal: "unavailable", // the connection ends in the handshake, and is nobody's
		},
		{
			name: "11 look-alike issuers at the forwarder",
			try: func(t *testing.T, c *cluster) error {
				return c.knock(t.Context(), "echo", lookAlikes(t, newCA(t, nil).issue(t, id(t, "user/alice")), 11))
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

// issuing is a CA that the operator's root signed, changed.
func (c *cluster) issuing(t *testing.T, change func(*x509.Certificate)) *authority {
	t.Helper()
	root, err := ca.Load(c.Path("operator", "ca.crt"), c.Path("operator", "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(3), Subject: pkix.Name{CommonName: "issuing"}, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		PermittedURIDomains: []string{trustDomain}, PermittedDNSDomainsCritical: true,
	}
	change(template)
	der, err := x509.CreateCertificate(rand.Reader, template, root.Certificate, key.Public(), root.Key)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{[][]byte{der}, made, key}
}

// lookAlikes puts CAs behind a certificate, of RSA keys of 8192 bits with no private half,
// each of which could have signed it.
func lookAlikes(t *testing.T, svid *tls.Certificate, n int) *tls.Certificate {
	t.Helper()
	signer := newCA(t, nil)
	for range n {
		modulus, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 8191))
		if err != nil {
			t.Fatal(err)
		}
		c := &x509.Certificate{SerialNumber: big.NewInt(4), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
		der, err := x509.CreateCertificate(rand.Reader, c, signer.cert, &rsa.PublicKey{N: modulus.SetBit(modulus, 8191, 1).SetBit(modulus, 0, 1), E: 65537}, signer.key)
		if err != nil {
			t.Fatal(err)
		}
		svid.Certificate = append(svid.Certificate, der)
	}
	return svid
}
