package compile

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/tests/kit"
)

// root makes a root of demo.flor, valid from 2026 to 2036, changed by change.
func root(change func(*x509.Certificate)) string {
	return rootOf(kit.NewKey(), change)
}

func weakRoot(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	return rootOf(key, func(*x509.Certificate) {})
}

func rootOf(key crypto.Signer, change func(*x509.Certificate)) string {
	c := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "demo.flor root"},
		NotBefore: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		URIs: []*url.URL{{Scheme: "spiffe", Host: "demo.flor"}},
	}
	change(c)
	return string(ca.EncodeCertificates(kit.SelfSigned(c, key)))
}

// TestRoots checks that every rule about roots reports its fault, and nothing for a near miss.
func TestRoots(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	good := root(func(*x509.Certificate) {})
	day := 24 * time.Hour
	for name, c := range map[string]struct {
		pem string
		ids []string
	}{
		"good":                   {good, nil},
		"two":                    {good + good, nil},
		"text around":            {"# root\n" + good, nil},
		"nothing":                {"-----BEGIN CERTIFICATE-----", []string{"FL050"}},
		"not DER":                {"-----BEGIN CERTIFICATE-----\nZ29sZGVu\n-----END CERTIFICATE-----\n", []string{"FL050"}},
		"second is not DER":      {good + "-----BEGIN CERTIFICATE-----\nZ29sZGVu\n-----END CERTIFICATE-----\n", []string{"FL050"}},
		"expired":                {root(func(c *x509.Certificate) { c.NotAfter = now.Add(-day) }), []string{"FL051"}},
		"expires tomorrow":       {root(func(c *x509.Certificate) { c.NotAfter = now.Add(day) }), []string{"FL056"}},
		"expires next month":     {root(func(c *x509.Certificate) { c.NotAfter = now.Add(31 * day) }), nil},
		"lives a week":           {root(func(c *x509.Certificate) { c.NotBefore, c.NotAfter = now.Add(-5*day), now.Add(2*day) }), nil},
		"lived a week":           {root(func(c *x509.Certificate) { c.NotBefore, c.NotAfter = now.Add(-6*day), now.Add(day) }), []string{"FL056"}},
		"weak key":               {weakRoot(t), []string{"FL057"}},
		"constrained":            {root(func(c *x509.Certificate) { c.PermittedURIDomains = []string{"demo.flor"} }), nil},
		"constrained to another": {root(func(c *x509.Certificate) { c.PermittedURIDomains = []string{"other.flor"} }), []string{"FL054"}},
		"not yet valid":          {root(func(c *x509.Certificate) { c.NotBefore = now.Add(day) }), []string{"FL052"}},
		"valid since today":      {root(func(c *x509.Certificate) { c.NotBefore = now }), nil},
		"no authority":           {root(func(c *x509.Certificate) { c.IsCA = false }), []string{"FL053"}},
		"may not sign":           {root(func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageDigitalSignature }), []string{"FL053"}},
		"usage not limited":      {root(func(c *x509.Certificate) { c.KeyUsage = 0 }), nil},
		"another trust domain":   {root(func(c *x509.Certificate) { c.URIs[0].Host = "demo.flora" }), []string{"FL054"}},
		"reported as missing":    {"", nil},
		"no trust domain":        {root(func(c *x509.Certificate) { c.URIs = nil }), nil},
		"all at once": {root(func(c *x509.Certificate) {
			c.NotAfter, c.IsCA, c.URIs[0].Host = now.Add(-day), false, "x"
		}), []string{"FL051", "FL053", "FL054"}},
	} {
		var ids []string
		for _, f := range CheckRoots([]string{good, c.pem}, "demo.flor", now) {
			ids = append(ids, f.ID)
			if f.Place != "trust.roots[1]" || f.Problem == "" || f.Value == "" || f.Remedy == "" {
				t.Errorf("%s: %+v", name, f)
			}
			if rule, ok := rules(t)[f.ID]; !ok || rule.Severity != f.Severity {
				t.Errorf("%s: %s is not among the rules as %s", name, f.ID, f.Severity)
			}
		}
		if !slices.Equal(ids, c.ids) {
			t.Errorf("%s: got %v, want %v", name, ids, c.ids)
		}
	}
	if faults := CheckRoots([]string{good}, "", now); faults != nil {
		t.Errorf("a trust domain that is missing is no fault of the root: %v", faults)
	}
}

// TestValidate checks that warnings are reported, and withhold no documents.
func TestValidate(t *testing.T) {
	src := flake(t, `{
		one = mkCluster (base // { users.ann = { roles = [ "reader" ]; }; users.bob = { }; });
		bad = mkCluster (base // { users.ann.roles = [ "reder" ]; users.bob = { }; });
	}`)
	for cluster, want := range map[string][]string{"one": {"FL050", "FL040"}, "bad": {"FL050", "FL013", "FL040"}} {
		src.Cluster = cluster
		reports, err := Validate(t.Context(), src, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		r := reports[0]
		var ids []string
		for _, f := range r.Faults {
			ids = append(ids, f.ID)
		}
		if !slices.Equal(ids, want) || r.Hosts != 2 || r.Err(false) == nil {
			t.Errorf("%s: got %v of %d hosts, want %v", cluster, ids, r.Hosts, want)
		}
	}
	src.Cluster = "one"
	if c, err := Compile(t.Context(), src); err != nil || len(c.Documents) != 2 {
		t.Errorf("a warning kept documents back: %v", err)
	}
}
