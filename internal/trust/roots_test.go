package trust_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/tests/kit"
)

func TestRoots(t *testing.T) {
	key, issuing := kit.NewKey(), kit.NewKey()
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	template := func() *x509.Certificate {
		return &x509.Certificate{Subject: pkix.Name{CommonName: "root"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	}
	root := &ca.Authority{Certificate: kit.SelfSigned(template(), key), Key: key}
	text := func(c *x509.Certificate) string { return string(ca.EncodeCertificates(c)) }
	good := text(root.Certificate)
	for name, c := range map[string]struct {
		domain string
		texts  []string
		want   string
	}{
		"no root":           {"demo.flor", nil, "trust domain demo.flor: no trust roots"},
		"not PEM":           {"demo.flor", []string{good, "x"}, "trust root 1: no PEM block CERTIFICATE in it"},
		"another block":     {"demo.flor", []string{good + "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"}, `trust root 0: a PEM block "PRIVATE KEY", want CERTIFICATE`},
		"not DER":           {"demo.flor", []string{"-----BEGIN CERTIFICATE-----\nZ29sZGVu\n-----END CERTIFICATE-----\n"}, "trust root 0: x509: "},
		"a weak key":        {"demo.flor", []string{text(kit.SelfSigned(template(), weak))}, "trust root 0: key is RSA of 1024 bits"},
		"no trust domain":   {"", []string{good}, `trust domain "": not a SPIFFE trust domain`},
		"a path":            {"spiffe://demo.flor/x", []string{good}, "not a SPIFFE trust domain"},
		"several in a text": {"demo.flor", []string{"# roots\n" + good + good, good}, ""},
	} {
		r, err := trust.NewRoots(c.domain, c.texts)
		switch {
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want …%s…", name, err, c.want)
		case c.want == "" && (err != nil || len(r.Certificates()) != 3):
			t.Errorf("%s: %v", name, err)
		}
	}

	roots, err := trust.NewRoots("demo.flor", []string{good})
	if err != nil {
		t.Fatal(err)
	}
	if same, _ := trust.NewRoots("demo.flor", []string{good}); !roots.Equal(same) {
		t.Error("the same roots are not equal")
	}
	if other, _ := trust.NewRoots("demo.flor", []string{good, good}); roots.Equal(other) {
		t.Error("other roots are equal")
	}

	constrained := func(domain string) *x509.Certificate {
		c := template()
		c.PermittedURIDomains, c.PermittedDNSDomainsCritical = []string{domain}, true
		return c
	}
	late := constrained("demo.flor")
	late.NotBefore, late.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Minute)
	for name, c := range map[string]struct {
		issuing *x509.Certificate
		want    string
	}{
		"good":           {kit.Sign(constrained("demo.flor"), issuing.Public(), root), ""},
		"no constraint":  {kit.Sign(template(), issuing.Public(), root), "no name constraint, want one for demo.flor"},
		"another domain": {kit.Sign(constrained("other.flor"), issuing.Public(), root), "its name constraint is for other.flor"},
		"a stranger's":   {kit.SelfSigned(constrained("demo.flor"), weak), "key is RSA of 1024 bits"},
		"ended":          {kit.Sign(late, issuing.Public(), root), "issuing certificate: x509: certificate has expired"},
	} {
		if err := roots.CheckIssuing(c.issuing, time.Now()); (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// FuzzLeafID checks that an identity that LeafID returns is the URI SAN of the certificate.
func FuzzLeafID(f *testing.F) {
	f.Add(kit.NewCA().Issue(kit.ID("node/ursula"), time.Hour).Certificate[0])
	f.Fuzz(func(t *testing.T, der []byte) {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return
		}
		if id, err := trust.LeafID(c); err == nil && (len(c.URIs) != 1 || c.URIs[0].String() != id.String()) {
			t.Errorf("%s, from %v", id, c.URIs)
		}
	})
}
