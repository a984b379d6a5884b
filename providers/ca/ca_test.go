package ca_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/x509bundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/svid/x509svid"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/tests/kit"
)

var now = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// authorities are a root and an issuing CA of demo.flor.
func authorities(t testing.TB) (root, issuing *ca.Authority) {
	t.Helper()
	root, err := ca.NewRoot("demo.flor", now)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ca.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	csr, err := ca.NewIssuingCSR("demo.flor", key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := root.SignIssuing(csr, ca.IssuingLifetime, now)
	if err != nil {
		t.Fatal(err)
	}
	return root, &ca.Authority{Certificate: c, Key: key}
}

func TestIssue(t *testing.T) {
	root, issuing := authorities(t)
	key, err := ca.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	outline := kit.ID("service/outline")
	leaf, err := issuing.Issue(ca.SVID{ID: outline, Node: "ursula", Key: key.Public(), Until: now.Add(time.Hour)}, now)
	if err != nil {
		t.Fatal(err)
	}
	bundle := x509bundle.FromX509Authorities(spiffeid.RequireTrustDomainFromString("demo.flor"), []*x509.Certificate{root.Certificate})
	got, _, err := x509svid.Verify([]*x509.Certificate{leaf, issuing.Certificate}, bundle, x509svid.WithTime(now))
	if err != nil || got.String() != outline.String() {
		t.Fatalf("go-spiffe: %v, %v", got, err)
	}
	if leaf.IsCA || !leaf.BasicConstraintsValid || leaf.KeyUsage != x509.KeyUsageDigitalSignature ||
		len(leaf.ExtKeyUsage) != 2 || len(leaf.DNSNames)+len(leaf.IPAddresses)+len(leaf.EmailAddresses) != 0 {
		t.Errorf("leaf: CA %v, usage %v %v, names %v", leaf.IsCA, leaf.KeyUsage, leaf.ExtKeyUsage, leaf.DNSNames)
	}
	if !leaf.NotBefore.Equal(now.Add(-trust.Backdated)) && !leaf.NotBefore.Equal(issuing.Certificate.NotBefore) || !leaf.NotAfter.Equal(now.Add(time.Hour)) {
		t.Errorf("leaf: valid from %s to %s", leaf.NotBefore, leaf.NotAfter)
	}
	if leaf.SerialNumber.BitLen() < 100 {
		t.Errorf("leaf: serial %x is short", leaf.SerialNumber)
	}
	i, r := issuing.Certificate, root.Certificate
	if !i.IsCA || i.MaxPathLen != 0 || !i.MaxPathLenZero || i.KeyUsage != x509.KeyUsageCertSign|x509.KeyUsageCRLSign || i.URIs[0].String() != "spiffe://demo.flor" {
		t.Errorf("issuing: CA %v, path %d, usage %v, URIs %v", i.IsCA, i.MaxPathLen, i.KeyUsage, i.URIs)
	}
	for what, c := range map[string]*x509.Certificate{"issuing": i, "root": r} {
		if len(c.PermittedURIDomains) != 1 || c.PermittedURIDomains[0] != "demo.flor" || !c.PermittedDNSDomainsCritical {
			t.Errorf("%s: constrained to %v, critical %v", what, c.PermittedURIDomains, c.PermittedDNSDomainsCritical)
		}
	}
	if !r.IsCA || r.MaxPathLen != 1 || r.URIs[0].String() != "spiffe://demo.flor" {
		t.Errorf("root: CA %v, path %d, URIs %v", r.IsCA, r.MaxPathLen, r.URIs)
	}
}

func TestLifetimes(t *testing.T) {
	_, issuing := authorities(t)
	key, err := ca.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	u := kit.ID("node/ursula")
	end := issuing.Certificate.NotAfter
	leaf, err := issuing.Issue(ca.SVID{ID: u, Key: key.Public(), Until: end.Add(time.Hour)}, end.Add(-time.Minute))
	if err != nil || !leaf.NotAfter.Equal(end) {
		t.Errorf("near the end of the issuing certificate: until %s, %v, want %s", leaf.NotAfter, err, end)
	}
	if _, err := issuing.Issue(ca.SVID{ID: u, Key: key.Public(), Until: end.Add(time.Hour)}, end.Add(time.Second)); err == nil || !strings.Contains(err.Error(), "it signs nothing any more") {
		t.Errorf("after the end: got %v", err)
	}
	other, err := spiffe.ParseID("spiffe://other.flor/node/ursula")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := issuing.Issue(ca.SVID{ID: other, Key: key.Public(), Until: end}, now); err == nil || !strings.Contains(err.Error(), "not of demo.flor") {
		t.Errorf("another trust domain: got %v", err)
	}
}

// request is a PEM certificate request with anything in it.
func request(t testing.TB, key crypto.Signer, template x509.CertificateRequest) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &template, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func TestParseCSR(t *testing.T) {
	outline := kit.ID("service/outline")
	uri := func(s ...string) x509.CertificateRequest {
		var r x509.CertificateRequest
		for _, s := range s {
			u, err := url.Parse(s)
			if err != nil {
				t.Fatal(err)
			}
			r.URIs = append(r.URIs, u)
		}
		return r
	}
	p256, _ := ca.NewKey()
	p384, _ := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	p521, _ := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	_, ed, _ := ed25519.GenerateKey(rand.Reader)
	rsa2048, _ := rsa.GenerateKey(rand.Reader, 2048)
	rsa1024, _ := rsa.GenerateKey(rand.Reader, 1024)
	for name, csr := range map[string][]byte{
		"P-256":    request(t, p256, uri(outline.String())),
		"P-384":    request(t, p384, uri(outline.String())),
		"Ed25519":  request(t, ed, uri(outline.String())),
		"RSA":      request(t, rsa2048, uri(outline.String())),
		"no name":  request(t, p256, uri()),
		"a common": request(t, p256, x509.CertificateRequest{Subject: pkix.Name{CommonName: "ignored"}}),
	} {
		if _, err := ca.ParseCSR(csr, outline); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	good := request(t, p256, uri(outline.String()))
	block, _ := pem.Decode(good)
	forged := bytes.Clone(block.Bytes)
	forged[len(forged)-1] ^= 1
	for name, c := range map[string]struct {
		csr  []byte
		want string
	}{
		"P-521":       {request(t, p521, uri()), "key is ECDSA P-521, want"},
		"RSA 1024":    {request(t, rsa1024, uri()), "key is RSA of 1024 bits, want"},
		"another":     {request(t, p256, uri("spiffe://demo.flor/service/wiki")), "for [spiffe://demo.flor/service/wiki], want spiffe://demo.flor/service/outline"},
		"two":         {request(t, p256, uri(outline.String(), outline.String())), "want spiffe://demo.flor/service/outline"},
		"DNS":         {request(t, p256, x509.CertificateRequest{DNSNames: []string{"drhorrible"}}), "names hosts or addresses"},
		"forged":      {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: forged}), "it must be signed by the key that it is for"},
		"not PEM":     {[]byte("hello"), "not PEM"},
		"other block": {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes}), `a PEM block "CERTIFICATE", want`},
		"two blocks":  {append(bytes.Clone(good), good...), "more than one PEM block"},
		"not DER":     {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("x")}), "certificate request: "},
	} {
		if _, err := ca.ParseCSR(c.csr, outline); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want …%s…", name, err, c.want)
		}
	}
}

func TestSignIssuingRefused(t *testing.T) {
	root, _ := authorities(t)
	key, _ := ca.NewKey()
	other, err := ca.NewIssuingCSR("other.flor", key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := ca.NewCSR(kit.ID("node/ursula"), key)
	if err != nil {
		t.Fatal(err)
	}
	for _, csr := range [][]byte{other, leaf, request(t, key, x509.CertificateRequest{})} {
		if _, err := root.SignIssuing(csr, ca.IssuingLifetime, now); err == nil || !strings.Contains(err.Error(), "this root is of spiffe://demo.flor: sign it with that trust domain's root") {
			t.Errorf("got %v", err)
		}
	}
	if _, err := ca.NewRoot("10.0.0.1", now); err == nil || !strings.Contains(err.Error(), `trust domain "10.0.0.1": an IP address`) {
		t.Errorf("got %v", err)
	}
	if _, err := ca.NewRoot("Demo Flor", now); err == nil || !strings.Contains(err.Error(), `want a name such as "demo.flor"`) {
		t.Errorf("got %v", err)
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	root, issuing := authorities(t)
	crt, key := filepath.Join(dir, "a.crt"), filepath.Join(dir, "a.key")
	if err := ca.Save(crt, ca.EncodeCertificates(root.Certificate)); err != nil {
		t.Fatal(err)
	}
	if err := ca.SaveKey(key, root.Key); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{crt: 0o644, key: 0o600} {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", path, st.Mode(), err, want)
		}
	}
	loaded, err := ca.Load(crt, key)
	if err != nil || !loaded.Certificate.Equal(root.Certificate) || loaded.TrustDomain() != "demo.flor" {
		t.Fatalf("got %v, %v", loaded, err)
	}
	if err := ca.SaveKey(key, issuing.Key); err != nil {
		t.Fatal(err)
	}
	if _, err := ca.Load(crt, key); err == nil || !strings.Contains(err.Error(), "not for the key in") {
		t.Errorf("another key: got %v", err)
	}
	if err := os.Chmod(key, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := ca.Load(crt, key); err == nil || !strings.Contains(err.Error(), "mode 0640 lets others use a secret: chmod 0600 it") {
		t.Errorf("a key for others: got %v", err)
	}
	if _, err := ca.Load(key, key); err == nil || !strings.Contains(err.Error(), `a PEM block "PRIVATE KEY", want "CERTIFICATE"`) {
		t.Errorf("a key for a certificate: got %v", err)
	}
}

// TestRequest makes the issuing key once.
func TestRequest(t *testing.T) {
	dir := t.TempDir()
	key, csr := filepath.Join(dir, "k"), filepath.Join(dir, "c")
	if err := ca.Request("demo.flor", key, csr); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := ca.Request("demo.flor", key, csr); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(key); err != nil || !bytes.Equal(first, again) {
		t.Errorf("the key changed: %v", err)
	}
}

// FuzzCSR: whatever is taken can be issued for, and the SVID is of the granted ID
// and nothing else.
func FuzzCSR(f *testing.F) {
	_, issuing := authorities(f)
	outline := kit.ID("service/outline")
	key, _ := ca.NewKey()
	good, err := ca.NewCSR(outline, key)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	block, _ := pem.Decode(good)
	f.Add(block.Bytes)
	f.Add(request(f, key, x509.CertificateRequest{DNSNames: []string{"a"}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, csr := range [][]byte{b, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: b})} {
			pub, err := ca.ParseCSR(csr, outline)
			if err != nil {
				continue
			}
			leaf, err := issuing.Issue(ca.SVID{ID: outline, Key: pub, Until: now.Add(time.Hour)}, now)
			if err != nil {
				t.Fatal(err)
			}
			if len(leaf.URIs) != 1 || leaf.URIs[0].String() != outline.String() || len(leaf.DNSNames) != 0 || leaf.IsCA {
				t.Fatalf("an SVID of %v %v", leaf.URIs, leaf.DNSNames)
			}
		}
	})
}
