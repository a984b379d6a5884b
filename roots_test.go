package florete

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"
)

// certificate makes one signed by key, its own where parent is nil.
func certificate(t *testing.T, c, parent *x509.Certificate, pub, key any) *x509.Certificate {
	t.Helper()
	if c.SerialNumber = big.NewInt(1); parent == nil {
		parent = c
	}
	if c.NotAfter.IsZero() {
		c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, pub, key)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func text(c *x509.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
}

func TestRoots(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	issuing, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	ca := func() *x509.Certificate {
		return &x509.Certificate{Subject: pkix.Name{CommonName: "root"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	}
	root := certificate(t, ca(), nil, key.Public(), key)
	good := text(root)
	for name, c := range map[string]struct {
		domain string
		texts  []string
		want   string
	}{
		"no root":           {"demo.flor", nil, "trust domain demo.flor: no trust roots"},
		"not PEM":           {"demo.flor", []string{good, "x"}, "trust root 1: no PEM block CERTIFICATE in it"},
		"another block":     {"demo.flor", []string{good + "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"}, `trust root 0: a PEM block "PRIVATE KEY", want CERTIFICATE`},
		"not DER":           {"demo.flor", []string{"-----BEGIN CERTIFICATE-----\nZ29sZGVu\n-----END CERTIFICATE-----\n"}, "trust root 0: x509: "},
		"a weak key":        {"demo.flor", []string{text(certificate(t, ca(), nil, weak.Public(), weak))}, "trust root 0: key is RSA of 1024 bits"},
		"no trust domain":   {"", []string{good}, `trust domain "": not a SPIFFE trust domain`},
		"a path":            {"spiffe://demo.flor/x", []string{good}, "not a SPIFFE trust domain"},
		"several in a text": {"demo.flor", []string{"# roots\n" + good + good, good}, ""},
	} {
		r, err := NewRoots(c.domain, c.texts)
		switch {
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want …%s…", name, err, c.want)
		case c.want == "" && (err != nil || len(r.Certificates()) != 3):
			t.Errorf("%s: %v", name, err)
		}
	}

	roots, err := NewRoots("demo.flor", []string{good})
	if err != nil {
		t.Fatal(err)
	}
	if same, _ := NewRoots("demo.flor", []string{good}); !roots.Equal(same) {
		t.Error("the same roots are not equal")
	}
	if other, _ := NewRoots("demo.flor", []string{good, good}); roots.Equal(other) {
		t.Error("other roots are equal")
	}

	constrained := func(domain string) *x509.Certificate {
		c := ca()
		c.PermittedURIDomains, c.PermittedDNSDomainsCritical = []string{domain}, true
		return c
	}
	late := constrained("demo.flor")
	late.NotBefore, late.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Minute)
	for name, c := range map[string]struct {
		issuing *x509.Certificate
		want    string
	}{
		"good":           {certificate(t, constrained("demo.flor"), root, issuing.Public(), key), ""},
		"no constraint":  {certificate(t, ca(), root, issuing.Public(), key), "no name constraint, want one for demo.flor"},
		"another domain": {certificate(t, constrained("other.flor"), root, issuing.Public(), key), "its name constraint is for other.flor"},
		"a stranger's":   {certificate(t, constrained("demo.flor"), nil, weak.Public(), weak), "key is RSA of 1024 bits"},
		"ended":          {certificate(t, late, root, issuing.Public(), key), "issuing certificate: x509: certificate has expired"},
	} {
		if err := roots.CheckIssuing(c.issuing, time.Now()); (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// FuzzLeafID: what is an identity has the URI SAN that says so.
func FuzzLeafID(f *testing.F) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	u, _ := url.Parse("spiffe://demo.flor/node/ursula")
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1), URIs: []*url.URL{u}}, &x509.Certificate{}, key.Public(), key)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(der)
	f.Fuzz(func(t *testing.T, der []byte) {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return
		}
		if id, err := LeafID(c); err == nil && (len(c.URIs) != 1 || c.URIs[0].String() != id.String()) {
			t.Errorf("%s, from %v", id, c.URIs)
		}
	})
}
