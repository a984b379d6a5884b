package federation

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/spiffebundle"
	"github.com/spiffe/go-spiffe/v2/federation"
	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

const blue = "blue.example"

// endpoint is the bundle endpoint of blue.
type endpoint struct {
	*httptest.Server
	ca *kit.CA

	mu     sync.Mutex
	cert   *tls.Certificate
	bundle []byte

	web    []string // roots, for profile https_web; nil for https_spiffe
	listen Web      // of the Federation
}

// present has the endpoint show a certificate and serve a bundle from now on.
func (e *endpoint) present(cert *tls.Certificate, bundle []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cert, e.bundle = cert, bundle
}

func newEndpoint(t *testing.T) *endpoint {
	t.Helper()
	e := &endpoint{ca: kit.NewCAOf(blue)}
	e.present(e.svid(e.ca), e.ca.Bundle(1, time.Second))
	e.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		w.Write(e.bundle)
	}))
	e.Server.TLS = &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.cert, nil
	}}
	e.StartTLS()
	e.Server.TLS.Certificates = nil
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) svid(ca *kit.CA) *tls.Certificate {
	id, err := spiffe.ParseID("spiffe://" + blue + "/service/bundles")
	if err != nil {
		panic(err)
	}
	return ca.Issue(id, time.Hour)
}

func (e *endpoint) settings(refresh time.Duration) any {
	trust := map[string]any{"name": "blue", "trustDomain": blue, "endpoint": e.URL, "bundle": string(e.ca.Bundle(1, refresh))}
	if e.web != nil {
		trust["profile"], trust["endpointRoots"] = profileWeb, e.web
	} else {
		trust["endpointID"] = "spiffe://" + blue + "/service/bundles"
	}
	return map[string]any{"refresh": 60, "trusts": []any{trust}}
}

func TestConformance(t *testing.T) {
	e := newEndpoint(t)
	providertest.Run(t, providertest.Suite{
		Kind: Name, Need: "federation-blue", Request: request{blue}, Settings: e.settings(time.Hour), Public: true,
		Make: func(e *providertest.Env) server.AnyKind {
			return server.Any(struct{ server.Kind[*Policy] }{New(Config{Store: e.Store, Policy: server.Compiled[Policy](e.Policies)})})
		},
	})
}

// running is a Federation that follows an endpoint.
type running struct {
	*Federation
	t  *testing.T
	db store.Store
}

func run(t *testing.T, e *endpoint) *running {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "state.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var p *Policy
	f := New(Config{Store: db, Policy: func() *Policy { return p }, Web: e.listen})
	compiled, err := f.Compile(document.Policy{
		Host: "forge", TrustDomain: kit.Domain, Trust: document.Trust{Roots: []string{kit.NewCA().RootPEM()}},
		Kinds: map[string]json.RawMessage{Name: kit.JSON(e.settings(time.Second))},
	})
	if err != nil {
		t.Fatal(err)
	}
	p = compiled
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() { _ = f.Run(ctx, func() {}) })
	t.Cleanup(func() { cancel(); ended.Wait(); db.Close() })
	return &running{f, t, db}
}

func (r *running) bundle() *trust.Bundle {
	b, _, err := r.inForce(r.t.Context(), r.Policy().trusts[blue])
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

func (r *running) row(code, part string) bool {
	entries, _, err := r.db.List(r.t.Context(), server.AuditPrefix)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range entries {
		if s := string(e.Value); strings.Contains(s, `"code":"`+code+`"`) && strings.Contains(s, part) {
			return true
		}
	}
	return false
}

// TestFollows checks that a foreign root that is announced, and later the only one, is followed.
func TestFollows(t *testing.T) {
	e := newEndpoint(t)
	r := run(t, e)
	next := kit.NewCAOf(blue)
	e.present(e.svid(e.ca), e.ca.Bundle(2, time.Second, next))
	kit.Eventually(t, "both roots are in force", func() bool { return r.bundle().Sequence() == 2 && len(r.bundle().Roots().Certificates()) == 2 })
	e.present(e.svid(next), next.Bundle(3, time.Second))
	kit.Eventually(t, "the new root alone is in force", func() bool { return r.bundle().Sequence() == 3 })
	if got := r.bundle().Roots().Certificates(); len(got) != 1 || !got[0].Equal(next.Root.Certificate) {
		t.Errorf("%d roots, want the new one alone", len(got))
	}
	if !r.row(server.CodeInForce, "sequence number 3 came into force") {
		t.Error("no audit row")
	}
}

// TestRefuses checks that the last good bundle stays, whatever an endpoint does.
func TestRefuses(t *testing.T) {
	stranger := kit.NewCAOf(blue)
	id, err := spiffe.ParseID("spiffe://" + blue + "/service/other")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		do         func(e *endpoint)
		code, part string
	}{
		"a lower sequence number":    {func(e *endpoint) { e.present(e.svid(e.ca), e.ca.Bundle(4, time.Second, stranger)) }, codeBundle, "sequence number 4, want one after 5"},
		"no sequence number":         {func(e *endpoint) { e.present(e.svid(e.ca), e.ca.Bundle(0, time.Second, stranger)) }, codeBundle, "sequence number 0, want one after 5"},
		"the same number, more keys": {func(e *endpoint) { e.present(e.svid(e.ca), e.ca.Bundle(5, time.Second, stranger)) }, codeBundle, "sequence number 5 with other keys"},
		"another SPIFFE ID":          {func(e *endpoint) { e.present(e.ca.Issue(id, time.Hour), e.ca.Bundle(6, time.Second, stranger)) }, codeEndpoint, "it is spiffe://blue.example/service/other"},
		"another CA of equal name":   {func(e *endpoint) { e.present(e.svid(stranger), stranger.Bundle(6, time.Second)) }, codeEndpoint, "endpoint of blue.example"},
		"no keys at all":             {func(e *endpoint) { e.present(e.svid(e.ca), []byte(`{"keys":[],"spiffe_sequence":6}`)) }, codeBundle, "no certificate of use x509-svid"},
		"no bundle":                  {func(e *endpoint) { e.present(e.svid(e.ca), []byte(`<html>`)) }, codeBundle, "unable to parse"},
		"the root of another trust domain": {func(e *endpoint) {
			e.present(e.svid(e.ca), e.ca.Bundle(6, time.Second, kit.NewCA()))
		}, codeBundle, "of trust domain demo.flor"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEndpoint(t)
			e.present(e.svid(e.ca), e.ca.Bundle(5, time.Second))
			r := run(t, e)
			kit.Eventually(t, "the good one is in force", func() bool { return r.bundle().Sequence() == 5 })
			c.do(e)
			kit.Eventually(t, "an audit row "+c.part, func() bool { return r.row(c.code, c.part) })
			if b := r.bundle(); b.Sequence() != 5 || len(b.Roots().Certificates()) != 1 {
				t.Errorf("sequence number %d is in force", b.Sequence())
			}
		})
	}
}

// TestNewerInFlake checks that the bundle of the flake replaces the fetched bundle only if it is
// newer.
func TestNewerInFlake(t *testing.T) {
	e := newEndpoint(t)
	e.present(e.svid(e.ca), e.ca.Bundle(5, time.Second))
	r := run(t, e)
	kit.Eventually(t, "it is fetched", func() bool { return r.bundle().Sequence() == 5 })
	for sequence, want := range map[uint64]uint64{2: 5, 7: 7} {
		first, err := trust.ParseBundle(blue, e.ca.Bundle(sequence, time.Second))
		if err != nil {
			t.Fatal(err)
		}
		b, _, err := r.inForce(t.Context(), &trusted{name: blue, key: foreignAt + "blue", first: first, digest: "another"})
		if err != nil || b.Sequence() != want {
			t.Errorf("%d in the flake: %v, %v in force, want %d", sequence, err, b.Sequence(), want)
		}
		b, _, err = r.inForce(t.Context(), &trusted{name: blue, key: foreignAt + "azure", first: first, digest: "another"})
		if err != nil || b.Sequence() != sequence {
			t.Errorf("%d in the flake under another name: %v, %v in force", sequence, err, b.Sequence())
		}
	}
}

// TestEndpoint checks that common software can read the bundle of this trust domain, and that its
// sequence number grows only if roots change.
func TestEndpoint(t *testing.T) {
	env := providertest.NewEnv(t, "elm")
	env.Runs(Name, map[string]any{"refresh": 60, "trusts": []any{}}, func(e *providertest.Env) server.AnyKind {
		return server.Any(New(Config{Store: e.Store, Policy: server.Compiled[Policy](e.Policies)}))
	})
	env.Start()
	td := spiffeid.RequireTrustDomainFromString(kit.Domain)
	known := spiffebundle.FromX509Authorities(td, env.Roots().Certificates())
	get := func(id spiffeid.ID) (*spiffebundle.Bundle, error) {
		return federation.FetchBundle(t.Context(), td, "https://"+env.Address()+"/federation/bundle", federation.WithSPIFFEAuth(known, id))
	}
	self := kit.ProviderID("drhorrible", Name).SPIFFE()
	var first *spiffebundle.Bundle
	kit.Eventually(t, "the bundle is served", func() (ok bool) { b, err := get(self); first = b; return err == nil })
	sequence, _ := first.SequenceNumber()
	if hint, _ := first.RefreshHint(); hint != time.Minute || sequence == 0 || !first.HasX509Authority(env.Root.Certificate) {
		t.Errorf("hint %v, sequence number %d", hint, sequence)
	}
	if _, err := get(spiffeid.RequireFromString("spiffe://" + kit.Domain + "/service/other")); err == nil {
		t.Error("another SPIFFE ID than the endpoint's will do")
	}
	env.Restart()
	kit.Eventually(t, "it is served again", func() bool { b, err := get(self); return err == nil && b.Equal(first) })
	next := kit.NewCA()
	env.Policy.Trust.Roots = append(env.Policy.Trust.Roots, next.RootPEM())
	env.Publish(providertest.Serial + 1)
	kit.Eventually(t, "the next root is in it", func() bool {
		b, err := get(self)
		if err != nil || !b.HasX509Authority(next.Root.Certificate) {
			return false
		}
		n, _ := b.SequenceNumber()
		return n > sequence
	})
}
