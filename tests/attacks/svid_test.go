package attacks

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/local"
)

// TestSVIDs attacks with SVIDs that break a rule of the SPIFFE specifications or of Florete. The
// operator's root has signed them, but provider p and the forwarder of host b must refuse them.
func TestSVIDs(t *testing.T) {
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	between := func(from, to time.Duration) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.NotBefore, c.NotAfter = time.Now().Add(from), time.Now().Add(to) }
	}
	untrusted, clock := local.Decision{Code: hostapi.CodeUntrusted.Name}, local.Decision{Decision: "transient", Code: hostapi.CodeClock.Name}
	var table []attack
	for _, x := range []struct {
		name   string
		change func(path string) func(*x509.Certificate) // path is /node/b or /user/alice
		key    crypto.Signer
		why    string // reason in the provider's refusal
		row    local.Decision
	}{
		{name: "two URI SANs", change: ids("spiffe://demo.flor", "https://demo.flor/"), why: "2 URI SANs, want exactly one"},
		{name: "two SPIFFE IDs", change: ids("spiffe://demo.flor", "spiffe://demo.flor/node/p"), why: "2 URI SANs, want exactly one"},
		{name: "no URI SAN", change: func(string) func(*x509.Certificate) { return kit.URIs() }, why: "0 URI SANs, want exactly one"},
		{name: "trust domain in upper case", change: ids("spiffe://DEMO.flor"), why: "untrusted"},
		{name: "scheme in upper case", change: ids("SPIFFE://demo.flor"), why: "untrusted"},
		{name: "a port", change: ids("spiffe://demo.flor:443"), why: "untrusted"},
		{name: "userinfo", change: ids("spiffe://root@demo.flor"), why: "untrusted"},
		{name: "another scheme", change: ids("https://demo.flor"), why: "untrusted"},
		{name: "percent-encoding", change: ids("spiffe://demo.flor/%2e%2e"), why: "untrusted"},
		{name: "dot segments", change: ids("spiffe://demo.flor/x/.."), why: "untrusted"},
		{name: "an empty segment", change: ids("spiffe://demo.flor/"), why: "untrusted"},
		{name: "a query", change: func(path string) func(*x509.Certificate) { return kit.URIs("spiffe://demo.flor" + path + "?x") }, why: "untrusted"},
		{name: "a slash at the end", change: func(path string) func(*x509.Certificate) { return kit.URIs("spiffe://demo.flor" + path + "/") }, why: "untrusted"},
		{name: "another trust domain", change: ids("spiffe://other.flor"), why: "untrusted"},
		{name: "expired", change: all(between(-2*time.Minute, -time.Minute)), why: "clock", row: clock},
		{name: "of the future", change: all(between(10*time.Minute, 50*time.Minute)), why: "clock", row: clock},
		{name: "for code signing", change: all(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning} }), why: "lacks the extended key usage"},
		{name: "for servers alone", change: all(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }), why: "lacks the extended key usage"},
		{name: "without digital signature", change: all(func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageKeyAgreement }), why: "lacks the key usage digitalSignature"},
		{name: "that may sign lists", change: all(func(c *x509.Certificate) { c.KeyUsage |= x509.KeyUsageCRLSign }), why: "it is a CA's"},
		{name: "with a key of RSA-1024", change: all(func(*x509.Certificate) {}), key: weak, why: "bad certificate", row: local.Decision{Decision: "denied", Code: "handshake", Message: "RSA of 1024 bits"}},
	} {
		if x.row == (local.Decision{}) {
			x.row = untrusted
		}
		odd := func(t *testing.T, c *cluster, id spiffe.ID) *tls.Certificate {
			key := x.key
			if key == nil {
				key = kit.NewKey()
			}
			return c.oddLeaf(t, id, key, x.change("/"+id.Short()))
		}
		table = append(table, attack{
			name: "node certificate, " + x.name,
			try: func(t *testing.T, c *cluster) error {
				client := c.client(t, c.b, "config")
				client.SVID = odd(t, c, kit.ID("node/b"))
				_, err := client.Artifact(t.Context())
				return err
			},
			refusal: x.why, row: x.row,
		}, attack{
			name: "alice, " + x.name,
			try: func(t *testing.T, c *cluster) error {
				return c.knock(t.Context(), "echo", odd(t, c, kit.ID("user/alice")))
			},
			refusal: "CRYPTO_ERROR",
		})
	}
	table = append(table, attack{
		name: "a service's certificate in place of its node's",
		try: func(t *testing.T, c *cluster) error {
			client := c.client(t, c.b, "config")
			client.SVID = c.svid(t, c.b, "cert-service-wiki")
			_, err := client.Artifact(t.Context())
			return err
		},
		refusal: "only nodes call providers", row: local.Decision{Code: hostapi.CodeUntrusted.Name, Message: "only nodes call providers"},
	}, attack{
		name: "a service's certificate that requests its node's",
		try: func(t *testing.T, c *cluster) error {
			return c.need(t, c.b, "cert-node", func(client *hostapi.Client, _ *hostapi.Request) { client.SVID = c.svid(t, c.b, "cert-service-wiki") })
		},
		refusal: "only nodes call providers", row: local.Decision{Decision: "denied", Code: hostapi.CodeUntrusted.Name, Message: "only nodes call providers"},
	})
	run(t, table)
}

// ids returns a change that sets the URIs of a leaf certificate. The path of the identity is
// appended to the first URI. The other URIs are used as they are.
func ids(first string, others ...string) func(path string) func(*x509.Certificate) {
	return func(path string) func(*x509.Certificate) {
		return kit.URIs(append([]string{first + path}, others...)...)
	}
}

// all returns a change of a leaf certificate that does not depend on the path.
func all(change func(*x509.Certificate)) func(string) func(*x509.Certificate) {
	return func(string) func(*x509.Certificate) { return change }
}

// oddLeaf returns an SVID like one that provider p would issue, except for a change. It is issued
// below the operator's root. The function change alters the certificate before it is signed.
func (c *cluster) oddLeaf(t *testing.T, id spiffe.ID, key crypto.Signer, change func(*x509.Certificate)) *tls.Certificate {
	t.Helper()
	by := kit.OddIssuing(c.root(t), kit.NewKey())
	template := &x509.Certificate{
		KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	kit.URIs(id.String())(template)
	change(template)
	leaf := kit.Sign(template, key.Public(), by)
	return &tls.Certificate{Certificate: [][]byte{leaf.Raw, by.Certificate.Raw}, PrivateKey: key, Leaf: leaf}
}
