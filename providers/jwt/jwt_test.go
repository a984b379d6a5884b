package jwt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/spiffe/go-spiffe/v2/bundle/jwtbundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/svid/jwtsvid"
	"golang.org/x/sync/errgroup"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

const issuer = "http://tokens.demo.flor.rete"

var wiki = kit.ID("service/wiki")

type settings struct {
	Issuer     string `json:"issuer"`
	Generation int    `json:"generation"`
}

// The kind without its background task, which commits too.
func TestConformance(t *testing.T) {
	providertest.Run(t, providertest.Suite{
		Kind: Name, Need: "jwt-service-wiki",
		Request:  document.JWTRequest{Issuer: issuer, ID: wiki, Audiences: []string{"vault", "https://s3.example.org"}},
		Settings: settings{issuer, 1},
		Make: func(e *providertest.Env) server.AnyKind {
			return server.Any(struct{ server.Kind[*Policy] }{New(Config{Store: e.Store, Key: e.Key, Policy: server.Compiled[Policy](e.Policies)})})
		},
		Secret: []string{"tokens"},
	})
}

// fixture is an Issuer without its server.
type fixture struct {
	t      *testing.T
	policy document.Policy
	db     store.Store
	*Issuer
	compiled *Policy
}

func newFixture(t *testing.T, issuer string) *fixture {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "state.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	key, err := sealedstore.New(sealedstore.Secret())
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, db: db}
	f.policy = document.Policy{Host: "forge", TrustDomain: kit.Domain, Grants: []document.Grant{
		{Caller: kit.ID("node/elm"), Need: "jwt-service-wiki", Kind: Name, Generation: 1,
			Request: kit.JSON(document.JWTRequest{Issuer: issuer, ID: wiki, Audiences: []string{"vault", "s3"}})},
		{Caller: kit.ID("node/elm"), Need: "jwt-keys", Kind: Name, Generation: 1, Request: kit.JSON(document.JWTRequest{Issuer: issuer})},
	}}
	f.Issuer = New(Config{Store: db, Key: key, Policy: func() *Policy { return f.compiled }, Listen: "127.0.0.1:0"})
	f.generation(issuer, 1)
	return f
}

// generation puts another generation in force.
func (f *fixture) generation(issuer string, generation int) {
	f.t.Helper()
	f.policy.Kinds = map[string]json.RawMessage{Name: kit.JSON(settings{issuer, generation})}
	compiled, err := f.Compile(f.policy)
	if err != nil {
		f.t.Fatal(err)
	}
	f.compiled = compiled
}

func (f *fixture) call(grant int, now time.Time) server.Call {
	g := f.policy.Grants[grant]
	return server.Call{Caller: g.Caller, Grant: g, Now: now}
}

// answer requests and commits.
func (f *fixture) answer(grant int, now time.Time) hostapi.Answer {
	f.t.Helper()
	d, err := f.Answer(f.t.Context(), f.compiled, f.call(grant, now))
	if err == nil && d.Then != nil {
		_, err = f.db.Commit(f.t.Context(), store.Txn{If: d.If, Then: d.Then})
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return d.Answer
}

func (f *fixture) tokens(now time.Time) map[string]string {
	f.t.Helper()
	var tokens map[string]string
	if err := json.Unmarshal([]byte(f.answer(0, now).Values["tokens"]), &tokens); err != nil {
		f.t.Fatal(err)
	}
	return tokens
}

func (f *fixture) bundle(now time.Time) *jwtbundle.Bundle {
	f.t.Helper()
	b, err := jwtbundle.Parse(spiffeid.RequireTrustDomainFromString(kit.Domain), []byte(f.answer(1, now).Values["jwks"]))
	if err != nil {
		f.t.Fatal(err)
	}
	return b
}

// TestSPIFFE checks that go-spiffe accepts a token only for its audience.
func TestSPIFFE(t *testing.T) {
	f := newFixture(t, issuer)
	now := time.Now()
	tokens, bundle := f.tokens(now), f.bundle(now)
	for _, audience := range []string{"vault", "s3"} {
		svid, err := jwtsvid.ParseAndValidate(tokens[audience], bundle, []string{audience})
		if err != nil {
			t.Fatal(err)
		}
		if svid.ID != wiki.SPIFFE() || len(svid.Audience) != 1 || svid.Expiry.Sub(now) > 5*time.Minute || svid.Claims["iss"] != issuer || svid.Claims[document.ClaimNode] != "elm" {
			t.Errorf("%+v", svid)
		}
	}
	if _, err := jwtsvid.ParseAndValidate(tokens["vault"], bundle, []string{"s3"}); err == nil {
		t.Error("accepted for another audience")
	}
}

// TestDiscovery checks that a common OpenID Connect verifier finds the keys by the issuer.
func TestDiscovery(t *testing.T) {
	var f *fixture
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.pages().ServeHTTP(w, r) }))
	defer web.Close()
	f = newFixture(t, web.URL)
	verify := func(audience, token string) error {
		p, err := oidc.NewProvider(t.Context(), web.URL)
		if err != nil {
			t.Fatal(err)
		}
		v, err := p.Verifier(&oidc.Config{ClientID: audience}).Verify(t.Context(), token)
		if err == nil && v.Subject != wiki.String() {
			t.Errorf("subject %q", v.Subject)
		}
		return err
	}
	tokens := f.tokens(time.Now())
	if err := verify("vault", tokens["vault"]); err != nil {
		t.Error(err)
	}
	if err := verify("s3", tokens["vault"]); err == nil {
		t.Error("accepted for another audience")
	}
	f.generation(web.URL, 2) // even before a key of it is made
	if err := verify("vault", tokens["vault"]); err == nil {
		t.Error("accepted though its key was replaced")
	}
	if err := verify("s3", f.tokens(time.Now())["s3"]); err != nil {
		t.Errorf("of the new key: %v", err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, web.URL+"/keys", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "evil.example"
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("another name is answered with %d", resp.StatusCode)
	}
}

// TestRotation checks that hosts with keys of up to two hours ago can verify each token, and that a
// key is deleted after the tokens that it signed have expired.
func TestRotation(t *testing.T) {
	f := newFixture(t, issuer)
	begin := time.Now()
	var bundles []*jwtbundle.Bundle // of each step
	ids := map[string]bool{}
	const step = 3 * time.Minute
	for at := time.Duration(0); at < 73*time.Hour; at += step {
		now := begin.Add(at)
		before, _, err := f.keys.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		bundles = append(bundles, f.bundle(now))
		ring, _, err := f.keys.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		id := ring.Signer(now).ID
		ids[id] = true
		for age := 0; age < len(bundles) && time.Duration(age)*step < sealedstore.AnnouncedFor; age++ {
			if !bundles[len(bundles)-1-age].HasJWTAuthority(id) {
				t.Fatalf("after %s: hosts with the keys of %d steps ago lack %s", at, age, id)
			}
		}
		if before != nil && !bundles[len(bundles)-1].HasJWTAuthority(before.Signer(now.Add(-tokensLive)).ID) {
			t.Fatalf("after %s: a key is gone before what it signed", at)
		}
		if n := len(bundles[len(bundles)-1].JWTAuthorities()); n > 2 {
			t.Fatalf("after %s: %d keys", at, n)
		}
	}
	if len(ids) != 3 {
		t.Errorf("%d keys signed in three days", len(ids))
	}
}

// TestGeneration checks that a higher generation ends all tokens that were signed before, and that
// a lower generation does not restore them.
func TestGeneration(t *testing.T) {
	f := newFixture(t, issuer)
	now := time.Now()
	old := f.tokens(now)["vault"]
	for _, generation := range []int{2, 1} {
		f.generation(issuer, generation)
		if _, err := jwtsvid.ParseAndValidate(old, f.bundle(now), []string{"vault"}); err == nil {
			t.Errorf("generation %d: a token of generation 1 is accepted", generation)
		}
		if _, err := jwtsvid.ParseAndValidate(f.tokens(now)["vault"], f.bundle(now), []string{"vault"}); err != nil {
			t.Errorf("generation %d: %v", generation, err)
		}
	}
}

// TestReplicas checks that replicas that share a store have the same keys, even if all of them
// start at the same time.
func TestReplicas(t *testing.T) {
	f := newFixture(t, issuer)
	now := time.Now()
	var all errgroup.Group
	for range 8 {
		all.Go(func() error {
			other := keysIn(f.db, f.Key)
			return other.Keep(t.Context(), now, 1)
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	other := *f
	other.Issuer = New(f.Config)
	if _, err := jwtsvid.ParseAndValidate(other.tokens(now)["vault"], f.bundle(now), []string{"vault"}); err != nil {
		t.Error(err)
	}
	if ring, _, err := f.keys.Read(t.Context()); err != nil || len(ring) != 1 {
		t.Errorf("%d keys, %v", len(ring), err)
	}
}

// TestSealed checks that the store contains no readable key.
func TestSealed(t *testing.T) {
	f := newFixture(t, issuer)
	f.tokens(time.Now())
	ring, _, err := f.keys.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e, err := f.db.Get(t.Context(), keysAt)
	if err != nil || bytes.Contains(e.Value, ring[0].Private) || bytes.Contains(e.Value, []byte(ring[0].ID)) {
		t.Errorf("the record %q, %v", e.Value, err)
	}
	newer, err := sealedstore.New(sealedstore.Secret())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := keysIn(f.db, newer).Read(t.Context()); !errors.Is(err, sealedstore.ErrUnreadable) {
		t.Errorf("with another sealing key: %v", err)
	}
}

func TestRevoked(t *testing.T) {
	f := newFixture(t, issuer)
	now := time.Now()
	for _, c := range []struct {
		entry trust.Revocation
		kind  hostapi.Class
	}{
		{trust.Revocation{ID: wiki}, hostapi.Denied},
		{trust.Revocation{ID: kit.ID("node/elm")}, hostapi.Denied},
		{trust.Revocation{ID: wiki, ValidAfter: unixtime.Time{Time: now.Add(time.Minute)}}, hostapi.Transient},
	} {
		call := f.call(0, now)
		call.Revoked = revocations(t, c.entry)
		_, err := f.Answer(t.Context(), f.compiled, call)
		providertest.WantError(t, err, hostapi.Code{Name: hostapi.CodeRevoked.Name, Class: c.kind})
	}
	call := f.call(0, now)
	call.Revoked = revocations(t, trust.Revocation{ID: wiki, ValidAfter: unixtime.Time{Time: now.Add(-time.Minute)}})
	if _, err := f.Answer(t.Context(), f.compiled, call); err != nil {
		t.Errorf("reinstated: %v", err)
	}
}

func revocations(t *testing.T, entries ...trust.Revocation) *trust.Revocations {
	t.Helper()
	list, err := trust.SignedRevocations{List: string(kit.JSON(trust.Revocations{
		Schema: trust.RevocationsSchema, Format: document.NewestFormat, Cluster: "demo", Number: 1, Entries: entries, Certificates: []trust.RevokedCertificate{},
	}))}.Open()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestPolicyRefused(t *testing.T) {
	f := newFixture(t, issuer)
	for request, want := range map[string]string{
		`{"issuer":"http://other","id":"spiffe://demo.flor/service/wiki","audiences":["a"]}`:   `issuer "http://other": this provider is`,
		`{"issuer":"` + issuer + `","id":"spiffe://demo.flor/node/elm","audiences":["a"]}`:     "want a service of demo.flor",
		`{"issuer":"` + issuer + `","id":"spiffe://evil.flor/service/wiki","audiences":["a"]}`: "want a service of demo.flor",
		`{"issuer":"` + issuer + `","id":"spiffe://demo.flor/service/wiki"}`:                   "want both or neither",
		`{"issuer":"` + issuer + `","audiences":["a"]}`:                                        "want both or neither",
		`{}`: "no issuer",
	} {
		f.policy.Grants[0].Request = json.RawMessage(request)
		if _, err := f.Compile(f.policy); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", request, err, want)
		}
	}
	f.policy.Grants = nil
	f.policy.Kinds[Name] = kit.JSON(settings{issuer + "/path", 1})
	if _, err := f.Compile(f.policy); err == nil || !strings.Contains(err.Error(), "and nothing after") {
		t.Errorf("%v", err)
	}
}

func TestListen(t *testing.T) {
	for _, listen := range []string{"0.0.0.0:0", "192.0.2.1:80", ":0", "localhost"} {
		f := newFixture(t, issuer)
		f.Listen = listen
		ctx, stop := context.WithCancel(t.Context())
		if err := f.Run(ctx, stop); err == nil || !strings.Contains(err.Error(), "jwt listen") {
			t.Errorf("%s: %v", listen, err)
		}
		stop()
	}
}
