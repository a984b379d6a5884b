package token

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/announced"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/token/rules"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
	"github.com/florete/florete/tests/kit/providertest"
)

const (
	base       = "http://tokens.demo.flor.rete"
	acmeIssuer = base + "/v1/tenants/acme"
)

var (
	wiki  = kit.ID("service/wiki")
	alice = kit.ID("user/alice")
)

// acme is a tenant, whose issuer corp is at a URL.
func acme(corp string) Tenant {
	return Tenant{
		Namespaces: []string{"payments"},
		Issuers:    map[string]Issuer{"corp": {Issuer: corp, Audiences: []string{"ci", "other"}, SubjectClaim: "email", GroupsClaim: "groups"}},
		Set: rules.Set{
			Policies: []rules.Policy{
				{Subject: "role:writer", Action: "stream.publish", Object: "stream:acme/payments/*"},
				{Subject: wiki.String(), Action: "stream.subscribe", Object: "stream:acme/payments/orders"},
				{Subject: "subject:corp/alice@example.org", Action: "cache.read", Object: "namespace:acme/payments"},
			},
			Groupings: []rules.Grouping{{Member: wiki.String(), Role: "role:writer"}, {Member: alice.String(), Role: "role:writer"}},
		},
		Lifetime: 900, TokensPerMinute: 60,
	}
}

func settingsOf(t Tenant) settings {
	return settings{Issuer: base, Generation: 1, Tenants: map[string]Tenant{"acme": t, "other": {
		Namespaces: []string{}, Issuers: map[string]Issuer{}, Set: rules.Set{Policies: []rules.Policy{}, Groupings: []rules.Grouping{}}, Lifetime: 60, TokensPerMinute: 2,
	}}}
}

var wikiRequest = Request{Issuer: base, Tenant: "acme", ID: wiki, Requested: []string{"stream.publish"}, Resources: []string{"stream:acme/payments/x"}}

// answering is the kind without its socket.
type answering struct{ server.Kind[*Policy] }

func TestConformance(t *testing.T) {
	providertest.Run(t, providertest.Suite{
		Kind: Name, Need: "token-wiki-events", Request: wikiRequest, Settings: settingsOf(acme("https://login.example.org")), Secret: []string{"token"},
		Make: func(e *providertest.Env) server.AnyKind {
			return server.Any(answering{New(Config{Store: e.Store, Key: e.Key})})
		},
	})
}

// env is a process of the kind, with its socket.
type env struct {
	*providertest.Env
	t      *testing.T
	socket string
	kind   *Tokens
	keys   string
	dir    string // directory of the sockets
}

func start(t *testing.T, tenant Tenant) *env {
	t.Helper()
	return startWith(t, tenant, func(*env) {})
}

// startWith starts a process after change has altered the usual settings.
func startWith(t *testing.T, tenant Tenant, change func(*env)) *env {
	t.Helper()
	account, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "token") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	e := &env{Env: providertest.NewEnv(t, "ursula"), t: t, socket: filepath.Join(dir, Socket), keys: filepath.Join(dir, "svid.json"), dir: dir}
	e.Runs(Name, settingsOf(tenant), func(p *providertest.Env) server.AnyKind {
		log := slog.New(slog.NewTextHandler(io.Discard, nil))
		e.kind = New(Config{
			Store: p.Store, Key: p.Key, Policy: server.Compiled[Policy](p.Policies), SVIDKeys: e.keys, Listen: e.socket, Forwarder: account.Username,
			Control: filepath.Join(dir, announced.OperatorSocket), Operators: account.Username, Bootstrap: filepath.Join(dir, "bootstrap", "bootstrap.sock"),
			Policies: p.Policies, Audit: server.NewAudit(p.Store, log), Logger: log,
		})
		return server.Any(e.kind)
	})
	e.Grant(kit.ID("node/ursula"), "token-wiki-events", Name, wikiRequest)
	e.Grant(kit.ID("node/ursula"), "tenant-acme", Name, Request{Issuer: base, Tenant: "acme"})
	change(e)
	e.Start()
	sockets := []string{e.socket}
	if len(e.Policy.Operators) > 0 {
		sockets = append(sockets, filepath.Join(dir, announced.OperatorSocket))
	}
	for _, socket := range sockets {
		kit.Succeeds(t, socket, func() error {
			c, err := net.Dial("unix", socket)
			if err == nil {
				c.Close()
			}
			return err
		})
	}
	return e
}

// as returns a client whom the forwarder announces.
func (e *env) as(caller spiffe.ID) *http.Client {
	a := agenttest.Announced{Socket: e.socket, Service: kit.ID("service/tokens")}
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return a.Dial(caller) },
	}}
}

// exchange returns the answer to a form, and its status.
func (e *env) exchange(caller spiffe.ID, tenant string, form url.Values) (int, map[string]any) {
	e.t.Helper()
	if !form.Has("grant_type") {
		form.Set("grant_type", GrantType)
	}
	resp, err := e.as(caller).PostForm(base+"/v1/tenants/"+tenant+"/token/exchange", form)
	if err != nil {
		e.t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		e.t.Fatal(err)
	}
	if resp.Header.Get("Cache-Control") != "no-store" {
		e.t.Error("an answer that may be kept")
	}
	return resp.StatusCode, answer
}

// verified returns the token of an answer, verified with the keys of the pages.
func (e *env) verified(answer map[string]any) rules.Token {
	e.t.Helper()
	raw, _ := answer["access_token"].(string)
	v := rules.Verifier{Issuer: acmeIssuer, Keys: func() ([]byte, error) { return e.get("/jwks.json"), nil }}
	token, err := v.Verify(raw, time.Now())
	if err != nil {
		e.t.Fatalf("%v: %v", answer, err)
	}
	return token
}

func (e *env) get(page string) []byte {
	e.t.Helper()
	resp, err := e.as(alice).Get(acmeIssuer + page)
	if err != nil {
		e.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		e.t.Fatalf("%s: %d %s %v", page, resp.StatusCode, b, err)
	}
	return b
}

// TestSVID checks that a caller that the forwarder announces gets the permissions of the rules, or
// fewer if it requests fewer.
func TestSVID(t *testing.T) {
	e := start(t, acme("https://login.example.org"))
	status, answer := e.exchange(wiki, "acme", url.Values{})
	token := e.verified(answer)
	if status != http.StatusOK || token.Subject != wiki.String() || answer["scope"] != "stream.publish stream.subscribe" || answer["expires_in"] != 900.0 || answer["issued_token_type"] != TypeAccessToken || answer["token_type"] != "Bearer" {
		t.Errorf("%d %v", status, answer)
	}
	if !token.May("stream.publish", "stream:acme/payments/new") || token.May("stream.subscribe", "stream:acme/payments/new") || token.May("stream.publish", "stream:other/payments/new") || token.May("stream.publish", "*") {
		t.Errorf("%+v", token)
	}
	_, answer = e.exchange(wiki, "acme", url.Values{"requested": {"stream.publish cache.read"}, "resources": {"stream:acme/payments/orders stream:other/payments/x"}})
	if token := e.verified(answer); len(token.Permissions) != 1 || token.May("stream.publish", "stream:acme/payments/new") || !token.May("stream.publish", "stream:acme/payments/orders") {
		t.Errorf("%+v", token)
	}
	for _, form := range []url.Values{{"requested": {"stream.delete"}}, {"resources": {"stream:other/payments/*"}}} {
		if status, answer := e.exchange(wiki, "acme", form); status != http.StatusForbidden || answer["error"] != "access_denied" {
			t.Errorf("%v: %d %v", form, status, answer)
		}
	}
	if status, answer := e.exchange(kit.ID("service/other"), "acme", url.Values{}); status != http.StatusForbidden {
		t.Errorf("somebody else: %d %v", status, answer)
	}
	if status, answer := e.exchange(wiki, "other", url.Values{}); status != http.StatusForbidden {
		t.Errorf("another tenant: %d %v", status, answer)
	}
	var granted, refused int
	for _, r := range e.Audit() {
		switch {
		case r.Kind == Name && r.Outcome == server.Granted && r.Caller == wiki.String() && r.Detail["tenant"] == "acme" && r.Detail["token"] != "":
			granted++
		case r.Kind == Name && r.Code == hostapi.CodeNotGranted.Name:
			refused++
		}
		if strings.Contains(string(kit.JSON(r)), "eyJ") {
			t.Error("a row has a token")
		}
	}
	if granted != 2 || refused != 4 {
		t.Errorf("%d granted and %d refused rows", granted, refused)
	}
}

// TestRefused checks that bad requests get the errors of OAuth.
func TestRefused(t *testing.T) {
	e := start(t, acme("https://login.example.org"))
	for _, c := range []struct {
		tenant, form string
		status       int
		want, says   string
	}{
		{"acme", "grant_type=password", 400, "unsupported_grant_type", GrantType},
		{"nobody", "", 404, "invalid_request", "no tenant"},
		{"acme", "scope=stream.publish", 400, "invalid_request", `"scope"`},
		{"acme", "audience=x", 400, "invalid_request", `"audience"`},
		{"acme", "actor_token=x", 400, "invalid_request", `"actor_token"`},
		{"acme", "requested=a&requested=b", 400, "invalid_request", "2 times"},
		{"acme", "requested=*", 400, "invalid_request", "and no *"},
		{"acme", "resources=stream:*/*", 400, "invalid_request", "of every tenant"},
		{"acme", "subject_token_type=" + TypeJWT, 400, "invalid_request", "without subject_token"},
		{"acme", "subject_token=x", 400, "invalid_request", "subject_token_type"},
		{"acme", "subject_token=x&subject_token_type=" + TypeJWT, 400, "invalid_request", "want a signed JWT"},
		{"acme", "requested_token_type=urn:ietf:params:oauth:token-type:saml2", 400, "invalid_request", TypeAccessToken},
	} {
		form, err := url.ParseQuery(c.form)
		if err != nil {
			t.Fatal(err)
		}
		status, answer := e.exchange(wiki, c.tenant, form)
		says, _ := answer["error_description"].(string)
		if status != c.status || answer["error"] != c.want || !strings.Contains(says, c.says) {
			t.Errorf("%s: %d %v, want %d %s", c.form, status, answer, c.status, c.want)
		}
	}
	for name, change := range map[string]func(*http.Request){
		"another Host": func(r *http.Request) { r.Host = "evil.example" },
		"a page":       func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") },
		"JSON":         func(r *http.Request) { r.Header.Set("Content-Type", "application/json") },
		"in the URL":   func(r *http.Request) { r.URL.RawQuery = "requested=a.b" },
	} {
		r, err := http.NewRequest(http.MethodPost, acmeIssuer+"/token/exchange", strings.NewReader("grant_type="+url.QueryEscape(GrantType)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		change(r)
		resp, err := e.as(wiki).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode < 400 {
			t.Errorf("%s: %d", name, resp.StatusCode)
		}
	}
}

// TestQuota checks that the number of tokens per minute is limited for each tenant separately.
func TestQuota(t *testing.T) {
	tenant := acme("https://login.example.org")
	tenant.TokensPerMinute = 2
	e := start(t, tenant)
	for i := range 3 {
		status, answer := e.exchange(alice, "acme", url.Values{})
		if want := []int{200, 200, 429}[i]; status != want {
			t.Errorf("exchange %d: %d %v", i, status, answer)
		}
	}
}

// TestPages checks that a common OpenID Connect verifier finds the keys by the issuer in the token.
func TestPages(t *testing.T) {
	e := start(t, acme("https://login.example.org"))
	_, answer := e.exchange(wiki, "acme", url.Values{})
	ctx := oidc.ClientContext(t.Context(), e.as(alice))
	p, err := oidc.NewProvider(ctx, acmeIssuer)
	if err != nil {
		t.Fatal(err)
	}
	verified, err := p.VerifierContext(ctx, &oidc.Config{ClientID: acmeIssuer}).Verify(ctx, answer["access_token"].(string))
	if err != nil || verified.Subject != wiki.String() {
		t.Errorf("%+v, %v", verified, err)
	}
}

// TestNeeds checks that a host gets the token of its service, and the keys that verify it.
func TestNeeds(t *testing.T) {
	e := start(t, acme("https://login.example.org"))
	client := e.Client(kit.ID("node/ursula"))
	do := func(need string, r Request) map[string]string {
		a, err := client.Do(t.Context(), hostapi.Path(Name), hostapi.Request{Need: need, Serial: providertest.Serial, Generation: 1, Body: kit.JSON(r)})
		if err != nil {
			t.Fatal(err)
		}
		return a.Values
	}
	keys := filepath.Join(t.TempDir(), "jwks.json")
	if err := os.WriteFile(keys, []byte(do("tenant-acme", Request{Issuer: base, Tenant: "acme"})["jwks"]), 0o600); err != nil {
		t.Fatal(err)
	}
	v := rules.Verifier{Issuer: acmeIssuer, Keys: rules.KeyFile(keys)}
	token, err := v.Verify(do("token-wiki-events", wikiRequest)["token"], time.Now())
	if err != nil || token.Subject != wiki.String() || !token.May("stream.publish", "stream:acme/payments/x") || token.May("stream.publish", "stream:acme/payments/y") || token.May("stream.subscribe", "stream:acme/payments/orders") {
		t.Errorf("%+v, %v", token, err)
	}
}

// TestSealed checks that the store contains no readable key, and that each tenant has a separate
// key.
func TestSealed(t *testing.T) {
	e := start(t, acme("https://login.example.org"))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if status, answer := e.exchange(wiki, "acme", url.Values{}); status != http.StatusOK {
				t.Errorf("%d %v", status, answer)
			}
		})
	}
	all.Wait()
	seen := map[string]bool{}
	for _, name := range []string{"acme", "other"} {
		tenant := &Tenant{name: name}
		ring, _, err := e.kind.tenants.keys(tenant).Read(t.Context())
		if err != nil || len(ring) != 1 || seen[ring[0].ID] {
			t.Fatalf("%d keys, %v", len(ring), err)
		}
		seen[ring[0].ID] = true
		if entry, err := e.Store.Get(t.Context(), keysPrefix+name); err != nil || strings.Contains(string(entry.Value), ring[0].ID) {
			t.Errorf("%q, %v", entry.Value, err)
		}
	}
}

func TestPolicyRefused(t *testing.T) {
	for want, change := range map[string]func(*Tenant, *Request){
		"of every tenant":           func(t *Tenant, _ *Request) { t.Policies[0].Object = "tenant:*" },
		"not of tenant acme":        func(t *Tenant, _ *Request) { t.Policies[0].Object = "tenant:other" },
		"no namespace":              func(t *Tenant, _ *Request) { t.Namespaces = []string{} },
		"no issuer":                 func(t *Tenant, _ *Request) { t.Issuers = map[string]Issuer{} },
		"want at least one":         func(t *Tenant, _ *Request) { t.TokensPerMinute = 0 },
		"want 1 to 3600":            func(t *Tenant, _ *Request) { t.Lifetime = 3601 },
		"this provider is":          func(_ *Tenant, r *Request) { r.Issuer = "http://else" },
		"not one of the policy":     func(_ *Tenant, r *Request) { r.Tenant = "nobody" },
		"want a service of":         func(_ *Tenant, r *Request) { r.ID = alice },
		"what to request of its":    func(_ *Tenant, r *Request) { r.ID = spiffe.ID{} },
		"requested: action \"*\"":   func(_ *Tenant, r *Request) { r.Requested = []string{"*"} },
		"resources: object \"a:*\"": func(_ *Tenant, r *Request) { r.Resources = []string{"a:*"} },
	} {
		tenant, r := acme("https://login.example.org"), wikiRequest
		change(&tenant, &r)
		p := document.Policy{Host: "forge", TrustDomain: kit.Domain, Kinds: map[string]json.RawMessage{Name: kit.JSON(settingsOf(tenant))},
			Grants: []document.Grant{{Caller: kit.ID("node/elm"), Need: "token-wiki-events", Kind: Name, Generation: 1, Request: kit.JSON(r)}}}
		if _, err := New(Config{}).Compile(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
