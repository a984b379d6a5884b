package oidc

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/oauth2"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/tests/kit/providertest"
)

// TestPublicClient checks that a client without a secret, such as an app or a page, authenticates
// by PKCE alone.
func TestPublicClient(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.want = func(r *Request) { r.Public = true }
	f.grant(callback)
	delivered := f.register(1)
	if secret, ok := delivered["clientSecret"]; ok {
		t.Errorf("a public client was given the secret %q", secret)
	}
	s := f.service(delivered)
	code := s.signIn("state", "verifier")
	_, err := s.Exchange(s.ctx(), code, oauth2.VerifierOption("guess"))
	refused(t, "another verifier", err, "invalid_grant")
	if _, err := s.Exchange(s.ctx(), code, oauth2.VerifierOption("verifier")); err != nil {
		t.Error(err)
	}
	p := s.read(s.http.Get(s.AuthCodeURL("state")))
	if p.location == nil || p.location.Query().Get("error") != "invalid_request" {
		t.Errorf("without PKCE: status %d, sent to %v", p.status, p.location)
	}
	for origin, want := range map[string]string{"http://outline.demo.flor.rete": "http://outline.demo.flor.rete", "http://evil.example": "", "null": ""} {
		for _, page := range []string{"/token", "/userinfo", "/keys", "/.well-known/openid-configuration", "/auth"} {
			q := must(http.NewRequest(http.MethodOptions, issuerURL+page, nil))
			q.Header.Set("Origin", origin)
			r := must(s.http.Do(q))
			r.Body.Close()
			if got := r.Header.Get("Access-Control-Allow-Origin"); got != want && page != "/auth" || got != "" && page == "/auth" {
				t.Errorf("%s of %s: allowed is %q", page, origin, got)
			}
		}
	}
	call := f.call(1)
	call.Request.Rotation = 1
	_, err = f.p.Rotation(t.Context(), f.inForce(), call)
	providertest.WantError(t, err, hostapi.CodeRotation)
}

func TestScopes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.want = func(r *Request) { r.Scopes = []string{"openid", "email"} }
	f.grant(callback)
	s := f.service(f.register(1))
	p := s.begin("state", "verifier")
	if p.location == nil || p.location.Query().Get("error") != "invalid_scope" || p.location.Query().Get("state") != "state" {
		t.Errorf("scopes of others: status %d, sent to %v: %s", p.status, p.location, p.text)
	}
	s.Scopes = []string{"openid", "email"}
	s.signIn("state", "verifier")
}

// TestLogout checks that signing out ends the tokens, and redirects only to addresses of the
// service.
func TestLogout(t *testing.T) {
	t.Parallel()
	const bye = "http://outline.demo.flor.rete/bye"
	f := newFixture(t)
	f.want = func(r *Request) { r.PostLogoutRedirectURIs = []string{bye} }
	f.grant(callback)
	s := f.service(f.register(1))
	token, err := s.Exchange(s.ctx(), s.signIn("state", "verifier"), oauth2.VerifierOption("verifier"))
	if err != nil {
		t.Fatal(err)
	}
	var discovered struct {
		End string `json:"end_session_endpoint"`
	}
	if err := s.provider.Claims(&discovered); err != nil || discovered.End != issuerURL+"/logout" {
		t.Fatalf("end_session_endpoint is %q, %v", discovered.End, err)
	}
	logout := func(query url.Values) page {
		return s.read(s.http.Get(discovered.End + "?" + query.Encode()))
	}
	hint := token.Extra("id_token").(string)
	works := func() bool {
		_, err := s.provider.UserInfo(s.ctx(), oauth2.StaticTokenSource(token))
		return err == nil
	}
	forged := hint[:strings.LastIndex(hint, ".")+1] + strings.Repeat("A", 342)
	for name, c := range map[string]struct {
		query    url.Values
		status   int
		location string
	}{
		"elsewhere":       {url.Values{"client_id": {s.ClientID}, "post_logout_redirect_uri": {"https://evil.example/"}}, http.StatusBadRequest, ""},
		"another client":  {url.Values{"client_id": {"wiki.demo.flor.rete"}, "post_logout_redirect_uri": {bye}}, http.StatusBadRequest, ""},
		"no client":       {url.Values{"post_logout_redirect_uri": {bye}}, http.StatusBadRequest, ""},
		"client":          {url.Values{"client_id": {s.ClientID}, "post_logout_redirect_uri": {bye}, "state": {"a b"}}, http.StatusSeeOther, bye + "?state=a+b"},
		"forged hint":     {url.Values{"id_token_hint": {forged}, "post_logout_redirect_uri": {bye}}, http.StatusSeeOther, bye},
		"nothing":         {url.Values{}, http.StatusOK, ""},
		"hint of another": {url.Values{"id_token_hint": {hint}, "client_id": {"wiki.demo.flor.rete"}}, http.StatusBadRequest, ""},
	} {
		p := logout(c.query)
		location := ""
		if p.location != nil {
			location = p.location.String()
		}
		if p.status != c.status || location != c.location {
			t.Errorf("%s: status %d, sent to %q: %s", name, p.status, location, p.text)
		}
	}
	if !works() {
		t.Fatal("somebody was signed out without an ID token")
	}
	if p := logout(url.Values{"id_token_hint": {hint}, "post_logout_redirect_uri": {bye}}); p.location == nil || p.location.String() != bye {
		t.Errorf("status %d, sent to %v: %s", p.status, p.location, p.text)
	}
	if works() {
		t.Error("the access token works at /userinfo")
	}
	_, err = s.TokenSource(s.ctx(), &oauth2.Token{RefreshToken: token.RefreshToken}).Token()
	refused(t, "refresh token", err, "invalid_request")
}
