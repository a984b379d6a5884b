package oidc

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/oauth2"

	"github.com/florete/florete/tests/kit"
)

// refused checks that an error is an OAuth error with a code (RFC 6749, section 5.2).
func refused(t *testing.T, what string, err error, code string) {
	t.Helper()
	var e *oauth2.RetrieveError
	if !errors.As(err, &e) || e.ErrorCode != code {
		t.Errorf("%s: error is %v, want %s", what, err, code)
	}
}

func TestLogin(t *testing.T) {
	f := newFixture(t)
	delivered := f.register(1)
	s := f.service(delivered)
	verifier := oauth2.GenerateVerifier()
	code := s.signIn("state-1", verifier)

	_, err := s.Exchange(s.ctx(), code, oauth2.VerifierOption(oauth2.GenerateVerifier()))
	refused(t, "code with another verifier", err, "invalid_grant")
	_, err = s.Exchange(s.ctx(), code)
	refused(t, "code without verifier", err, "invalid_grant")

	token, err := s.Exchange(s.ctx(), code, oauth2.VerifierOption(verifier))
	if err != nil {
		t.Fatal(err)
	}
	id := s.idToken(token)
	var claims struct {
		Email    string `json:"email"`
		Verified bool   `json:"email_verified"`
		Name     string `json:"name"`
	}
	if err := id.Claims(&claims); err != nil {
		t.Fatal(err)
	}
	if id.Nonce != "nonce-of-state-1" || claims.Email != email || !claims.Verified || claims.Name != "alice" {
		t.Errorf("ID token has nonce %q and claims %+v", id.Nonce, claims)
	}
	info, err := s.provider.UserInfo(s.ctx(), oauth2.StaticTokenSource(token))
	if err != nil || info.Email != email || info.Subject != id.Subject {
		t.Errorf("userinfo is %+v, %v", info, err)
	}

	again, err := s.TokenSource(s.ctx(), &oauth2.Token{RefreshToken: token.RefreshToken}).Token()
	if err != nil {
		t.Fatal(err)
	}
	if got := s.idToken(again).Subject; got != id.Subject {
		t.Errorf("after refresh the subject is %q, was %q", got, id.Subject)
	}

	_, err = s.Exchange(s.ctx(), code, oauth2.VerifierOption(verifier))
	refused(t, "code a second time", err, "invalid_grant")

	f.stop()
	secrets := map[string]string{
		"client secret": delivered["clientSecret"], "password": password, "code": code, "verifier": verifier,
		"access token": token.AccessToken, "refresh token": token.RefreshToken, "hash": "$2a$",
	}
	if !strings.Contains(f.logs.String(), "login successful") {
		t.Errorf("logs were not collected: %s", f.logs.String())
	}
	for what, secret := range secrets {
		if strings.Contains(f.logs.String(), secret) {
			t.Errorf("the logs tell the %s", what)
		}
	}
}

func TestRefusals(t *testing.T) {
	f := newFixture(t)
	s := f.service(f.register(1))

	p := s.submit(s.begin("state", "verifier"), email, "wrong")
	if p.status != http.StatusUnauthorized || !strings.Contains(p.text, "do not match") || p.form.fields.Get("login") != email {
		t.Errorf("wrong password: status %d, %s, form %v", p.status, p.text, p.form)
	}
	p = s.submit(s.begin("state", "verifier"), "mallory@demo.flor", password)
	if p.status != http.StatusUnauthorized || p.location != nil {
		t.Errorf("unknown user: status %d, sent to %v", p.status, p.location)
	}
	p = s.submit(s.begin("state", "verifier", oauth2.SetAuthURLParam("approval_prompt", "force")), email, password)
	if p.location == nil || p.location.Query().Get("code") == "" {
		t.Errorf("signing in is consent: status %d, sent to %v", p.status, p.location)
	}

	p = s.begin("state", "verifier", oauth2.SetAuthURLParam("redirect_uri", callback+"/elsewhere"))
	if p.status != http.StatusBadRequest || p.location != nil || !strings.Contains(p.text, "Unregistered redirect_uri") {
		t.Errorf("wrong redirect URI: status %d, sent to %v: %s", p.status, p.location, p.text)
	}
	p = s.begin("state", "verifier", oauth2.SetAuthURLParam("client_id", "wiki.demo.flor.rete"))
	if p.status != http.StatusNotFound || p.location != nil {
		t.Errorf("client that was never registered: status %d, sent to %v", p.status, p.location)
	}
	s.ClientSecret = "guess"
	_, err := s.Exchange(s.ctx(), "code")
	refused(t, "guessed secret", err, "invalid_client")

	f.grant()
	if p := s.begin("state", "verifier"); p.status != http.StatusNotFound {
		t.Errorf("client whose grant was taken away: status %d: %s", p.status, p.text)
	}
}

func TestPages(t *testing.T) {
	f := newFixture(t)
	s := f.service(f.register(1))
	for path, want := range map[string]int{
		"/": http.StatusOK, "/robots.txt": http.StatusOK, "/static/style.css": http.StatusOK,
		"/device": http.StatusNotFound, "/approval": http.StatusNotFound, "/healthz": http.StatusNotFound, "/callback": http.StatusBadRequest,
	} {
		r, err := s.http.Get(issuerURL + path)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != want {
			t.Errorf("GET %s: status %d, want %d", path, r.StatusCode, want)
		}
		if !strings.Contains(r.Header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("GET %s: may load from anywhere: %v", path, r.Header)
		}
	}
	for _, path := range []string{"/device/code", "/token/introspect"} {
		r, err := s.http.PostForm(issuerURL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != http.StatusNotFound {
			t.Errorf("POST %s: status %d, want %d", path, r.StatusCode, http.StatusNotFound)
		}
	}
	if p := s.begin("state", "verifier"); p.title != "Sign in · demo" {
		t.Errorf("title is %q", p.title)
	}
}

// A restart keeps the client, keys and sessions.
func TestRestart(t *testing.T) {
	f := newFixture(t)
	delivered := f.register(1)
	s := f.service(delivered)
	verifier := oauth2.GenerateVerifier()
	token, err := s.Exchange(s.ctx(), s.signIn("state", verifier), oauth2.VerifierOption(verifier))
	if err != nil {
		t.Fatal(err)
	}
	open := s.begin("state", verifier)
	browser := s.http.Jar

	f.restart()
	s = f.service(delivered) // reads the keys again
	s.http.Jar = browser
	s.idToken(token)
	if _, err := s.TokenSource(s.ctx(), &oauth2.Token{RefreshToken: token.RefreshToken}).Token(); err != nil {
		t.Errorf("refresh after restart: %v", err)
	}
	if p := s.submit(open, email, password); p.location == nil {
		t.Errorf("sign-in begun before the restart: status %d: %s", p.status, p.text)
	}
}

func TestRotation(t *testing.T) {
	f := newFixture(t)
	was := f.service(f.register(1))
	now := f.service(f.register(2))
	if was.ClientSecret == now.ClientSecret {
		t.Fatal("generation 2 has the secret of generation 1")
	}
	code := now.signIn("state", "verifier")
	_, err := was.Exchange(was.ctx(), code, oauth2.VerifierOption("verifier"))
	refused(t, "secret of generation 1", err, "invalid_client")
	if _, err := now.Exchange(now.ctx(), code, oauth2.VerifierOption("verifier")); err != nil {
		t.Errorf("secret of generation 2: %v", err)
	}
}

// A provider may start before the policy makes it an issuer.
func TestIssuerFollowsThePolicy(t *testing.T) {
	f := newFixture(t)
	f.name("")
	f.serving(false)
	f.restart()
	f.grant(callback)
	f.serving(true)
	f.service(f.register(1))
	f.name("http://login.demo.flor.rete")
	kit.Eventually(t, "the issuer of the new policy", func() bool {
		q, err := http.NewRequest(http.MethodGet, "http://"+f.listen+"/.well-known/openid-configuration", nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Host = "login.demo.flor.rete"
		r, err := http.DefaultClient.Do(q)
		if err == nil {
			b, _ := io.ReadAll(r.Body)
			r.Body.Close()
			return strings.Contains(string(b), `"issuer": "http://login.demo.flor.rete"`)
		}
		return false
	})
}
