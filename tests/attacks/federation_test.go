package attacks

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/spiffebundle"
	"github.com/spiffe/go-spiffe/v2/federation"
	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
	"github.com/florete/florete/tests/local"
)

const blueDomain = "blue.example"

// blueID returns an identity of the foreign trust domain blue, by its short form.
func blueID(short string) spiffe.ID {
	id, err := spiffe.ParseID("spiffe://" + blueDomain + "/" + short)
	if err != nil {
		panic(err)
	}
	return id
}

// foreign is a foreign trust domain with its own CA and a bundle endpoint. Its root and its issuing
// certificate have no name constraints.
type foreign struct {
	ca       *kit.CA
	endpoint string
	server   *http.Server

	mu     sync.Mutex
	cert   *tls.Certificate
	bundle []byte
	served int
}

// newBlue creates a CA of the foreign trust domain blue.
func newBlue() *kit.CA {
	key := kit.NewKey()
	root := kit.SelfSigned(&x509.Certificate{
		Subject: pkix.Name{CommonName: "blue root"}, URIs: []*url.URL{{Scheme: "spiffe", Host: blueDomain}},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, key)
	b := &kit.CA{Root: &ca.Authority{Certificate: root, Key: key}}
	b.Issuing = issuing(b, blueDomain)
	return b
}

// issuing creates a CA that issues identities of a trust domain. Its certificate is signed by the
// root of another CA.
func issuing(of *kit.CA, domain string) *ca.Authority {
	return kit.OddIssuing(of.Root, kit.NewKey(), func(c *x509.Certificate) {
		c.URIs, c.PermittedURIDomains, c.PermittedDNSDomainsCritical = []*url.URL{{Scheme: "spiffe", Host: domain}}, nil, false
	})
}

func newForeign(at string) (*foreign, error) {
	f := &foreign{ca: newBlue()}
	f.present(f.ca, "service/bundles", f.ca.Bundle(1, time.Second))
	l, err := net.Listen("tcp", at)
	if err != nil {
		return nil, err
	}
	f.endpoint = "https://" + l.Addr().String() + "/bundle"
	f.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		_, _ = w.Write(f.bundle)
	})}
	config := &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.served++
		return f.cert, nil
	}}
	go func() { _ = f.server.Serve(tls.NewListener(l, config)) }()
	return f, nil
}

// present makes the bundle endpoint show another identity and serve another bundle from now on.
func (f *foreign) present(by *kit.CA, as string, bundle []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cert, f.bundle = by.Issue(blueID(as), time.Hour), bundle
}

// read waits until the bundle endpoint has been called twice. By then, the bundle that it served
// before has been processed.
func (f *foreign) read(t *testing.T) {
	t.Helper()
	at := func() int { f.mu.Lock(); defer f.mu.Unlock(); return f.served }
	first := at()
	kit.Succeeds(t, "the endpoint to be called twice", func() error {
		if at() < first+2 {
			return fmt.Errorf("called %d times", at()-first)
		}
		return nil
	})
}

// TestForeign attacks provider p and the forwarder of host b from a trust domain that they federate
// with.
func TestForeign(t *testing.T) {
	t.Run("its guest is let through", func(t *testing.T) {
		c := start(t)
		if err := c.knock(t.Context(), "echo", c.blue.ca.Issue(blueID("user/guest"), time.Hour)); err != nil {
			t.Fatal(err)
		}
	})
	ours := func(c *cluster) *kit.CA { return &kit.CA{Issuing: kit.OddIssuing(c.blue.ca.Root, kit.NewKey())} }
	// served is an attack by a guest. The guest's CA is in a bundle that the endpoint serves during
	// the attack.
	served := func(c *cluster, t *testing.T, as string, sequence uint64) error {
		next := newBlue()
		next.Issuing = issuing(next, blueDomain)
		c.blue.present(c.blue.ca, as, c.blue.ca.Bundle(sequence, time.Second, next))
		defer c.blue.present(c.blue.ca, "service/bundles", c.blue.ca.Bundle(5, time.Second))
		c.blue.read(t)
		time.Sleep(3 * time.Second) // the hosts would have the bundle by then
		return c.knock(t.Context(), "echo", next.Issue(blueID("user/guest"), time.Hour))
	}
	run(t, []attack{
		{
			name: "alice by the CA of another trust domain, which is trusted for its own",
			try: func(t *testing.T, c *cluster) error {
				return c.knock(t.Context(), "echo", ours(c).Issue(kit.ID("user/alice"), time.Hour))
			},
			refusal: "CRYPTO_ERROR",
		},
		{
			name: "node of ours by that CA, at a provider",
			try: func(t *testing.T, c *cluster) error {
				client := c.client(t, c.b, "config")
				client.SVID = ours(c).Issue(kit.ID("node/b"), time.Hour)
				_, err := client.Artifact(t.Context())
				return err
			},
			refusal: "certificate signed by unknown authority",
			row:     local.Decision{Code: hostapi.CodeUntrusted.Name},
		},
		{
			name: "node of that trust domain, at a provider",
			try: func(t *testing.T, c *cluster) error {
				client := c.client(t, c.b, "config")
				client.SVID = c.blue.ca.Issue(blueID("node/b"), time.Hour)
				_, err := client.Artifact(t.Context())
				return err
			},
			refusal: "want one of trust domain demo.flor",
			row:     local.Decision{Code: hostapi.CodeUntrusted.Name},
		},
		{
			name: "identity of that trust domain that is not named",
			try: func(t *testing.T, c *cluster) error {
				return c.knock(t.Context(), "echo", c.blue.ca.Issue(blueID("user/alice"), time.Hour))
			},
			refusal: "Application error 0x",
		},
		{
			name: "guest of that trust domain at another service",
			try: func(t *testing.T, c *cluster) error {
				return c.knock(t.Context(), "wiki", c.blue.ca.Issue(blueID("user/guest"), time.Hour))
			},
			refusal: "Application error 0x",
		},
		{
			name: "guest of that trust domain by the cluster's own root",
			try: func(t *testing.T, c *cluster) error {
				own := &kit.CA{Issuing: issuing(&kit.CA{Root: c.root(t)}, blueDomain)}
				return c.knock(t.Context(), "echo", own.Issue(blueID("user/guest"), time.Hour))
			},
			refusal: "CRYPTO_ERROR",
		},
		{
			name: "guest of a trust domain that is not declared",
			try: func(t *testing.T, c *cluster) error {
				id, err := spiffe.ParseID("spiffe://green.example/user/guest")
				if err != nil {
					t.Fatal(err)
				}
				return c.knock(t.Context(), "echo", (&kit.CA{Issuing: issuing(c.blue.ca, "green.example")}).Issue(id, time.Hour))
			},
			refusal: "CRYPTO_ERROR",
		},
		{
			name: "bundle of a lower sequence number with one more CA",
			try: func(t *testing.T, c *cluster) error {
				c.blue.present(c.blue.ca, "service/bundles", c.blue.ca.Bundle(5, time.Second))
				c.blue.read(t)
				return served(c, t, "service/bundles", 4)
			},
			refusal: "CRYPTO_ERROR",
			row:     local.Decision{Kind: "federation", Decision: "alarm", Code: "bundle-refused", Message: "sequence number 4, want one after 5"},
		},
		{
			name:    "bundle endpoint with another SPIFFE ID of that trust domain",
			try:     func(t *testing.T, c *cluster) error { return served(c, t, "service/other", 9) },
			refusal: "CRYPTO_ERROR",
			row:     local.Decision{Kind: "federation", Decision: "alarm", Code: "endpoint-untrusted", Message: "spiffe://blue.example/service/other"},
		},
	})
}

// TestForeignRevoked checks that an operator can revoke an identity of a foreign trust domain, and
// reinstate it. The revocation works locally, without the CA of that domain.
func TestForeignRevoked(t *testing.T) {
	agenttest.Root(t, "can run processes of another user")
	c := start(t)
	key, guest := c.Path("operator", "signing.key"), blueID("user/guest")
	old := c.blue.ca.Issue(guest, time.Hour)
	live, err := local.Hold(t.Context(), c.b.Manifest.Forwarder.Listen[0], kit.ID("service/echo"), old)
	if err != nil {
		t.Fatal(err)
	}
	// Hosts that do not run here have not reported the list.
	change := func(verb string) {
		t.Helper()
		if out, err := c.florctl(t, verb, guest.String(), "--key", key, "--wait", "0s"); err != nil && !strings.Contains(out, "is offered") {
			t.Fatal(out, err)
		}
	}
	change("revoke")
	began := time.Now()
	if took := live.Ended(within).Sub(began); took > within {
		t.Errorf("a live connection of %s goes on %s after it was revoked", guest, took)
	}
	knocks := func(svid *tls.Certificate) func(*testing.T, *cluster) error {
		return func(t *testing.T, c *cluster) error { return c.knock(t.Context(), "echo", svid) }
	}
	run(t, []attack{
		{name: "a revoked identity of a foreign trust domain", try: knocks(old), refusal: "bad certificate"},
		{name: "another certificate of it", try: knocks(c.blue.ca.Issue(guest, time.Hour)), refusal: "bad certificate"},
		{
			name: "an identity of a trust domain that is not declared, to be revoked", try: func(t *testing.T, c *cluster) error {
				_, err := c.florctl(t, "revoke", "spiffe://green.example/user/guest", "--key", key)
				return err
			},
			refusal: "trust domain green.example, want one of demo.flor, blue.example",
		},
	})
	c.wantRow(t, time.Time{}, local.Decision{Caller: "spiffe://demo.flor/user/dora", Kind: "control", Decision: "granted", Code: "revoke"})
	change("reinstate")
	kit.Succeeds(t, "the guest by a later certificate", func() error { return c.knock(t.Context(), "echo", c.blue.ca.Issue(guest, time.Hour)) })
}

// TestForeignLife checks a federation over time. The bundle of the cluster is served to other trust
// domains. When a foreign root is replaced, the cluster follows. A role that was taken from a
// foreign identity no longer works.
func TestForeignLife(t *testing.T) {
	c := start(t)
	td := spiffeid.RequireTrustDomainFromString(kit.Domain)
	own, err := x509.ParseCertificate(c.root(t).Certificate.Raw)
	if err != nil {
		t.Fatal(err)
	}
	at := c.b.Manifest.Providers["p"]["federation"]
	kit.Succeeds(t, "the cluster's own bundle with the keys of its tokens", func() error {
		b, err := federation.FetchBundle(t.Context(), td, "https://"+at.Addresses[0]+"/federation/bundle",
			federation.WithSPIFFEAuth(spiffebundle.FromX509Authorities(td, []*x509.Certificate{own}), at.ID.SPIFFE()))
		if err == nil && (!b.HasX509Authority(own) || len(b.JWTAuthorities()) == 0) {
			err = fmt.Errorf("%d tokens' keys", len(b.JWTAuthorities()))
		}
		return err
	})

	guest := func(by *kit.CA) error { return c.knock(t.Context(), "echo", by.Issue(blueID("user/guest"), time.Hour)) }
	old, next := c.blue.ca, newBlue()
	c.blue.present(old, "service/bundles", old.Bundle(20, time.Second, next))
	kit.Succeeds(t, "the guest by the next root", func() error { return guest(next) })
	if err := guest(old); err != nil {
		t.Errorf("by the former root, which is announced too: %v", err)
	}
	c.blue.present(next, "service/bundles", next.Bundle(21, time.Second))
	kit.Succeeds(t, "the guest by the former root to be refused", func() error {
		if guest(old) == nil {
			return fmt.Errorf("it is let in")
		}
		return nil
	})
	held, err := local.Hold(t.Context(), c.b.Manifest.Forwarder.Listen[0], kit.ID("service/echo"), next.Issue(blueID("user/guest"), time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	c.blue.ca = next

	var facts map[string]any
	b, err := os.ReadFile(c.Path("cluster", "facts.json"))
	if err == nil {
		err = json.Unmarshal(b, &facts)
	}
	if err != nil {
		t.Fatal(err)
	}
	facts["guest"] = []string{}
	if err := os.WriteFile(c.Path("cluster", "facts.json"), kit.JSON(facts), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := c.Commit(t.Context(), time.Now(), "the guest goes", "guest-gone"); err != nil {
		t.Fatal(err)
	}
	if err := c.Publish(t.Context(), c.p, "guest-gone"); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if ended := held.Ended(local.Limit); ended.Sub(begun) >= local.Limit {
		t.Error("the guest's connection lives on without its role")
	}
	if err := guest(next); err == nil {
		t.Error("the guest is let in without its role")
	}
}
