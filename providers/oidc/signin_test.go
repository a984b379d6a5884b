package oidc

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/dexidp/dex/storage"
	"golang.org/x/oauth2"

	"github.com/florete/florete/providers/announced"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/store"
)

// TestManySignIns checks that unfinished sign-ins leave nothing behind and block nobody.
func TestManySignIns(t *testing.T) {
	f := newFixture(t)
	s := f.service(f.register(1))
	for i := range 300 {
		stranger := *s
		stranger.http = f.client()
		if p := stranger.begin(fmt.Sprint(i), "verifier"); p.form == nil {
			t.Fatalf("sign-in %d: status %d", i, p.status)
		}
	}
	entries, _, err := f.db.List(t.Context(), "oidc/dex/request/")
	if err != nil || len(entries) > 0 {
		t.Errorf("%d records of sign-ins, %v, want none", len(entries), err)
	}
	s.signIn("state", "verifier")
}

// TestLongParameters checks that parameters longer than a service may send are refused, and that
// permitted ones pass unchanged.
func TestLongParameters(t *testing.T) {
	f := newFixture(t)
	s := f.service(f.register(1))
	for name, n := range map[string]int{"state": 2049, "nonce": 513, "scope": 1025, "redirect_uri": 2049, "code_challenge": 129,
		"client_id": 257, "login_hint": 257, "made_up": 257} {
		p := s.read(s.http.Get(s.AuthCodeURL("state", oauth2.SetAuthURLParam(name, strings.Repeat("x", n)))))
		if p.status != http.StatusBadRequest || p.form != nil || p.location != nil || !strings.Contains(p.text, name) {
			t.Errorf("%s of %d bytes: status %d, sent to %v: %s", name, n, p.status, p.location, p.text)
		}
	}
	// The server may close the connection before it has read the whole request.
	r, err := s.http.Get(s.AuthCodeURL(strings.Repeat("x", 700_000), oauth2.S256ChallengeOption("verifier")))
	if err == nil && r.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("state of 700 KB: status %d", r.StatusCode)
	}
	r, err = s.http.PostForm(issuerURL+"/auth", url.Values{"state": {strings.Repeat("x", 700_000)}})
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusBadRequest {
		t.Errorf("state of 700 KB, posted: status %d", r.StatusCode)
	}
	long := strings.Repeat("x", 2048)
	p := s.submit(s.read(s.http.Get(s.AuthCodeURL(long, oauth2.S256ChallengeOption("verifier"), oauth2.SetAuthURLParam("nonce", long[:512])))), email, password)
	if p.location == nil || p.location.Query().Get("state") != long {
		t.Errorf("the longest state and nonce: status %d, sent to %v: %s", p.status, p.location, p.text)
	}
}

// TestOtherBrowser checks that a sign-in can be finished only in the browser that began it.
func TestOtherBrowser(t *testing.T) {
	f := newFixture(t)
	attacker := f.service(f.register(1))
	begun := attacker.begin("state-of-the-attacker", "verifier")
	victim := *attacker
	for what, browser := range map[string]*http.Client{"one that was never here": f.client(), "one that was": f.client()} {
		victim.http = browser
		if what == "one that was" {
			victim.begin("state", "verifier")
		}
		if p := victim.read(victim.http.Get(begun.form.action.String())); p.status != http.StatusBadRequest || p.form != nil || !strings.Contains(p.text, "another browser") {
			t.Errorf("%s: status %d: %s", what, p.status, p.text)
		}
		if p := victim.submit(begun, email, password); p.status != http.StatusBadRequest || p.location != nil {
			t.Errorf("%s: status %d, sent to %v", what, p.status, p.location)
		}
	}
	if p := attacker.submit(begun, email, password); p.location == nil {
		t.Errorf("the browser itself: status %d: %s", p.status, p.text)
	}
	begun.form.action.RawQuery = strings.Replace(begun.form.action.RawQuery, "state=", "state=A", 1)
	if p := attacker.submit(begun, email, password); p.status != http.StatusBadRequest {
		t.Errorf("changed: status %d", p.status)
	}
}

func TestCookies(t *testing.T) {
	for issuer, want := range map[string]string{
		"http":  "florete-browser; Path=/; Max-Age=7776000; HttpOnly; SameSite=Lax",
		"https": "__Host-florete-browser; Path=/; Max-Age=7776000; HttpOnly; Secure; SameSite=Lax",
	} {
		h := header{}
		cookies{https: issuer == "https"}.set(h, browserCookie, "")
		if got := strings.Replace(http.Header(h).Get("Set-Cookie"), "=;", ";", 1); got != want {
			t.Errorf("%s: %q, want %q", issuer, got, want)
		}
	}
}

// header is an http.ResponseWriter of which only the header is used.
type header http.Header

func (h header) Header() http.Header         { return http.Header(h) }
func (h header) Write(b []byte) (int, error) { return len(b), nil }
func (h header) WriteHeader(int)             {}

// TestOtherSites checks that nobody can sign in through a form of another site, or under another
// name of the issuer.
func TestOtherSites(t *testing.T) {
	f := newFixture(t)
	s := f.service(f.register(1))
	for header, value := range map[string]string{"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"} {
		p := s.begin("state", "verifier")
		q, err := http.NewRequest(http.MethodPost, p.form.action.String(), strings.NewReader(url.Values{"login": {email}, "password": {password}}.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		q.Header.Set(header, value)
		if p := s.read(s.http.Do(q)); p.status != http.StatusForbidden || p.location != nil {
			t.Errorf("%s: %s: status %d, sent to %v", header, value, p.status, p.location)
		}
	}
	for host, want := range map[string]int{"evil.example": http.StatusMisdirectedRequest, "127.0.0.1:5556": http.StatusMisdirectedRequest,
		"auth.demo.flor.rete": http.StatusOK, "AUTH.demo.flor.rete:80": http.StatusOK, "auth.demo.flor.rete:81": http.StatusMisdirectedRequest} {
		q, err := http.NewRequest(http.MethodGet, issuerURL+"/.well-known/openid-configuration", nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Host = host
		r, err := s.http.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != want {
			t.Errorf("Host %s: status %d, want %d", host, r.StatusCode, want)
		}
	}
}

func TestPKCE(t *testing.T) {
	f := newFixture(t)
	s := f.service(f.register(1))
	set := oauth2.SetAuthURLParam
	challenge := oauth2.S256ChallengeFromVerifier("verifier")
	for what, options := range map[string][]oauth2.AuthCodeOption{
		"none":              {},
		"plain":             {set("code_challenge", challenge), set("code_challenge_method", "plain")},
		"no method":         {set("code_challenge", challenge)},
		"no challenge":      {set("code_challenge_method", "S256")},
		"another method":    {set("code_challenge", challenge), set("code_challenge_method", "s256")},
		"a short challenge": {set("code_challenge", challenge[:42]), set("code_challenge_method", "S256")},
	} {
		p := s.read(s.http.Get(s.AuthCodeURL("state", options...)))
		if p.location == nil || !strings.HasPrefix(p.location.String(), callback) || p.location.Query().Get("error") != "invalid_request" || p.location.Query().Get("state") != "state" {
			t.Errorf("%s: status %d, sent to %v", what, p.status, p.location)
		}
	}
	// A client of an older release may use a library without PKCE.
	id := s.ClientID
	old, _, err := f.p.clients.get(t.Context(), id)
	if err != nil || !old.PKCE {
		t.Fatalf("%+v, %v", old, err)
	}
	old.PKCE = false
	if _, err := f.db.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(key(id), old.encode())}}); err != nil {
		t.Fatal(err)
	}
	f.register(1)
	if p := s.read(s.http.Get(s.AuthCodeURL("state"))); p.form == nil {
		t.Errorf("an older client with a secret and no challenge: status %d, sent to %v", p.status, p.location)
	}
	var document struct {
		Methods    []string `json:"code_challenge_methods_supported"`
		Device     string   `json:"device_authorization_endpoint"`
		Introspect string   `json:"introspection_endpoint"`
	}
	if err := s.provider.Claims(&document); err != nil || fmt.Sprint(document.Methods) != "[S256]" || document.Device+document.Introspect != "" {
		t.Errorf("discovery says %+v, %v", document, err)
	}
}

// TestSilentConnections checks that the pages stay reachable for others while one client holds as
// many connections as it can.
func TestSilentConnections(t *testing.T) {
	f := newFixture(t)
	s := f.service(f.register(1))
	for range 3 {
		for i := range announced.PageConnections {
			c, err := net.Dial("tcp", f.listen)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if i%2 == 0 {
				io.WriteString(c, "POST /token HTTP/1.1\r\nHost: auth.demo.flor.rete\r\nContent-Length: 5\r\n\r\n")
			}
		}
		s.http.Timeout = time.Minute
		s.signIn("state", "verifier")
	}
}

// TestOldSignIn checks that a browser keeps a sign-in no longer than the time allowed for it.
func TestOldSignIn(t *testing.T) {
	s := signIns{cookies: cookies{key: must(sealedstore.New(bytes.Repeat([]byte{1}, 32)))}}
	for left, want := range map[time.Duration]bool{time.Minute: true, -time.Second: false} {
		in := &signIn{browser: "alice's"}
		ctx := context.WithValue(t.Context(), signInKey{}, in)
		if err := s.CreateAuthRequest(ctx, storage.AuthRequest{ID: "id", Expiry: time.Now().Add(left)}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.GetAuthRequest(context.WithValue(ctx, signInKey{}, &signIn{browser: "alice's"}), in.sealed); (err == nil) != want {
			t.Errorf("%s left: got %v", left, err)
		}
	}
}
