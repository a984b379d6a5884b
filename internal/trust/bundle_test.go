package trust_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/tests/kit"
)

const (
	blue  = "blue.example"
	green = "green.example"
)

func idOf(t *testing.T, domain, short string) spiffe.ID {
	t.Helper()
	id, err := spiffe.ParseID("spiffe://" + domain + "/" + short)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func bundleOf(t *testing.T, ca *kit.CA, sequence uint64, others ...*kit.CA) *trust.Bundle {
	t.Helper()
	b, err := trust.ParseBundle(ca.Root.TrustDomain(), ca.Bundle(sequence, time.Minute, others...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// free returns a CA without name constraints, so that only the verifier's roots decide which
// identities are accepted.
func free(domain string) *kit.CA {
	key := kit.NewKey()
	return &kit.CA{Root: &ca.Authority{Key: key, Certificate: kit.SelfSigned(&x509.Certificate{
		Subject: pkix.Name{CommonName: domain}, URIs: []*url.URL{{Scheme: "spiffe", Host: domain}},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, key)}}
}

// TestFederatedRoots checks that each CA can issue only identities of its own trust domain.
func TestFederatedRoots(t *testing.T) {
	cas := map[string]*kit.CA{kit.Domain: free(kit.Domain), blue: free(blue), green: free(green)}
	roots, err := cas[kit.Domain].Roots().Federated([]*trust.Bundle{bundleOf(t, cas[blue], 1), bundleOf(t, cas[green], 1)})
	if err != nil {
		t.Fatal(err)
	}
	for by, ca := range cas {
		for domain := range cas {
			free := &kit.CA{Issuing: kit.OddIssuing(ca.Root, kit.NewKey(), func(c *x509.Certificate) {
				c.URIs[0].Host = domain
				if domain == kit.Domain {
					return // the domain itself has a stricter rule
				}
				c.PermittedURIDomains, c.PermittedDNSDomainsCritical = nil, false
			})}
			svid := free.Issue(idOf(t, domain, "user/alice"), time.Hour)
			chain := []*x509.Certificate{svid.Leaf, free.Issuing.Certificate}
			id, err := roots.Verify(chain, time.Now(), x509.ExtKeyUsageClientAuth)
			if id.TrustDomain() != domain || (err == nil) != (by == domain) {
				t.Errorf("%s by the CA of %s: %s, %v", domain, by, id, err)
			}
		}
	}
	if _, err := cas[kit.Domain].Roots().Federated([]*trust.Bundle{bundleOf(t, kit.NewCA(), 1)}); err == nil {
		t.Error("a bundle of the own trust domain is federated with")
	}
}

func TestBundleAfter(t *testing.T) {
	ca, more := kit.NewCAOf(blue), kit.NewCAOf(blue)
	for name, c := range map[string]struct {
		old, next *trust.Bundle
		part      string
	}{
		"the next":             {bundleOf(t, ca, 1), bundleOf(t, ca, 2, more), ""},
		"the same":             {bundleOf(t, ca, 1, more), bundleOf(t, more, 1, ca), ""},
		"one before":           {bundleOf(t, ca, 2), bundleOf(t, ca, 1), "sequence number 1, want one after 2"},
		"another of the same":  {bundleOf(t, ca, 2), bundleOf(t, ca, 2, more), "with other keys"},
		"one without a number": {bundleOf(t, ca, 2), bundleOf(t, ca, 0), "sequence number 0"},
		"two without numbers":  {bundleOf(t, ca, 0), bundleOf(t, ca, 0, more), ""},
	} {
		err := c.next.CheckAfter(c.old)
		if (err == nil) != (c.part == "") || err != nil && !strings.Contains(err.Error(), c.part) {
			t.Errorf("%s: %v, want %q", name, err, c.part)
		}
	}
}

func TestParseBundle(t *testing.T) {
	good := string(kit.NewCAOf(blue).Bundle(3, time.Minute))
	leaf := &kit.CA{Root: kit.NewCAOf(blue).Root}
	leaf.Root = &ca.Authority{Certificate: kit.NewCAOf(blue).Issue(idOf(t, blue, "user/alice"), time.Hour).Leaf}
	for name, c := range map[string]struct{ text, part string }{
		"good":                  {good, ""},
		"words of another kind": {strings.Replace(good, `"keys"`, `"florete":1,"keys"`, 1), ""},
		"nothing":               {"", "unable to parse"},
		"no keys":               {`{"keys":[]}`, "no certificate of use x509-svid"},
		"another trust domain":  {string(kit.NewCA().Bundle(1, 0)), "of trust domain demo.flor"},
		"no CA":                 {string(leaf.Bundle(1, 0)), "not the certificate of a CA"},
		"negative":              {strings.Replace(good, `"spiffe_sequence":3`, `"spiffe_sequence":-3`, 1), "unable to parse"},
		"long":                  {good + strings.Repeat(" ", trust.MaxBundle), "bytes, want at most"},
	} {
		b, err := trust.ParseBundle(blue, []byte(c.text))
		if (err == nil) != (c.part == "") || err != nil && !strings.Contains(err.Error(), c.part) {
			t.Errorf("%s: %v, want %q", name, err, c.part)
		}
		if err != nil {
			continue
		}
		once, err := b.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		again, err := trust.ParseBundle(blue, once)
		if err != nil || !again.Equal(b) {
			t.Errorf("%s: written and read again it is another: %v", name, err)
		}
	}
}

func FuzzParseBundle(f *testing.F) {
	f.Add(kit.NewCAOf(blue).Bundle(3, time.Minute))
	f.Add([]byte(`{"keys":[{"use":"jwt-svid"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := trust.ParseBundle(blue, text)
		if err != nil {
			return
		}
		once, err := b.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := trust.ParseBundle(blue, once); err != nil || !again.Equal(b) {
			t.Errorf("%s is read as another: %v", once, err)
		}
	})
}

// TestForeign checks that the bundle in the manifest is in force until a newer bundle is delivered,
// and that a bundle that is older or cannot be read changes nothing.
func TestForeign(t *testing.T) {
	ca, next := kit.NewCAOf(blue), kit.NewCAOf(blue)
	l := hostdir.Layout(t.TempDir())
	m := document.Manifest{Host: "ursula", TrustDomain: kit.Domain, Federation: []document.Foreign{{TrustDomain: blue, Bundle: string(ca.Bundle(5, time.Minute)), Need: "federation-blue"}}}
	for _, c := range []struct {
		delivered string
		want      uint64
		problems  int
	}{
		{"", 5, 0},
		{string(next.Bundle(4, 0)), 5, 0},
		{string(next.Bundle(5, 0)), 5, 0},
		{"{}", 5, 1},
		{string(next.Bundle(6, 0)), 6, 0},
	} {
		if c.delivered != "" {
			kit.Swap(hostdir.Current(l.Need("federation-blue")), map[string][]byte{document.FileTrustBundle: []byte(c.delivered)})
		}
		all, problems := l.Foreign(m)
		if len(all) != 1 || all[0].Sequence() != c.want || len(problems) != c.problems {
			t.Errorf("%.30q: %d in force, problems %v, want %d", c.delivered, all[0].Sequence(), problems, c.want)
		}
		if trusts := all[0].Roots().Certificates()[0].Equal(ca.Root.Certificate); trusts != (c.want == 5) {
			t.Errorf("%.30q: the first root is in force: %v", c.delivered, trusts)
		}
	}
}
