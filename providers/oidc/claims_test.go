package oidc

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/oauth2"
)

// TestClaims checks that a client gets the groups and claims that the policy declares for it, in ID
// tokens, at /userinfo and after a refresh. A scope of its own stands for the scopes that they need.
// The groups of the issuer decide who may sign in.
func TestClaims(t *testing.T) {
	f := prepared(t)
	users := `[{"email": "` + email + `", "username": "alice", "userID": "u-1", "hash": "` + hash() + `", "groups": ["writers", "editor", "ops"]}]`
	if err := os.WriteFile(filepath.Join(f.dir, "users"), []byte(users), 0o600); err != nil {
		t.Fatal(err)
	}
	declared := Request{
		Scopes: []string{"openid", "offline_access", "wiki"}, AllowedGroups: []string{"writers"},
		Claims: map[string]string{"roles": "groups", "nickname": "preferred_username", "login": "sub", "name": "email"},
		Groups: map[string][]string{"Site Admin": {"ops", "root"}, "author": {"writers"}, "reviewer": {"nobody"}},
	}
	f.want = func(r *Request) {
		r.Scopes, r.AllowedGroups, r.Claims, r.Groups = declared.Scopes, declared.AllowedGroups, declared.Claims, declared.Groups
	}
	f.grant(callback)
	f.start()
	s := f.service(f.register(1))
	s.Scopes = []string{"openid", "offline_access", "wiki"}
	token, err := s.Exchange(s.ctx(), s.signIn("state", "verifier"), oauth2.VerifierOption("verifier"))
	if err != nil {
		t.Fatal(err)
	}
	type claims struct {
		Subject  string   `json:"sub"`
		Groups   []string `json:"groups"`
		Roles    []string `json:"roles"`
		Nickname string   `json:"nickname"`
		Login    string   `json:"login"`
		Name     string   `json:"name"`
		Email    string   `json:"email"`
	}
	check := func(what string, token *oauth2.Token, groups ...string) {
		t.Helper()
		var id, info claims
		verified := s.idToken(token)
		if err := verified.Claims(&id); err != nil {
			t.Fatal(err)
		}
		if err := verified.VerifyAccessToken(token.AccessToken); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		userinfo, err := s.provider.UserInfo(s.ctx(), oauth2.StaticTokenSource(token))
		if err == nil {
			err = userinfo.Claims(&info)
		}
		if err != nil {
			t.Fatal(err)
		}
		for at, c := range map[string]claims{"ID token": id, "userinfo": info} {
			if !slices.Equal(c.Groups, groups) || !slices.Equal(c.Roles, groups) || c.Nickname != "alice" || c.Login != c.Subject || c.Subject == "" || c.Name != email || c.Email != email {
				t.Errorf("%s, %s: %+v", what, at, c)
			}
		}
	}
	check("sign-in", token, "Site Admin", "author")

	// The names of a client may change while it has a refresh token.
	f.age(token)
	declared.Groups = map[string][]string{"author": {"writers"}, "editor": {"nobody"}}
	f.grant(callback)
	form := s.http
	token, err = s.Config.TokenSource(s.ctx(), &oauth2.Token{RefreshToken: token.RefreshToken}).Token()
	if err != nil {
		t.Fatal(err)
	}
	check("refresh", token, "author")
	resp, err := form.PostForm(issuerURL+"/token", map[string][]string{"grant_type": {"refresh_token"}, "refresh_token": {token.RefreshToken}, "scope": {"openid wiki"},
		"client_id": {s.ClientID}, "client_secret": {s.ClientSecret}})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("a refresh with the scopes of the sign-in: %s", resp.Status)
	}

	// Other scopes of Dex, and unknown ones, are refused.
	for _, scope := range []string{"groups", "email", "federated:id", "other"} {
		s.Scopes = []string{"openid", scope}
		if p := s.begin("state", "verifier"); p.location == nil || p.location.Query().Get("error") != "invalid_scope" {
			t.Errorf("scope %s: status %d, sent to %v", scope, p.status, p.location)
		}
	}
	// A claim is part of the scope of the claim that it comes from.
	declared.Scopes = nil
	f.grant(callback)
	s.Scopes = []string{"openid", "email"}
	if token, err = s.Exchange(s.ctx(), s.signIn("state", "verifier"), oauth2.VerifierOption("verifier")); err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := s.idToken(token).Claims(&all); err != nil {
		t.Fatal(err)
	}
	if all["name"] != email || all["groups"] != nil || all["roles"] != nil || all["nickname"] != nil {
		t.Errorf("claims with scope email: %v", slices.Sorted(maps.Keys(all)))
	}
	// Groups under other names let nobody in.
	declared.AllowedGroups = []string{"author"}
	f.grant(callback)
	if p := s.submit(s.begin("state", "verifier"), email, password); p.location != nil || !strings.Contains(p.text, "Not for you") {
		t.Errorf("status %d, sent to %v: %s", p.status, p.location, p.text)
	}
}

// TestClaimsRefused checks that no claim can replace one that tokens depend on.
func TestClaimsRefused(t *testing.T) {
	for name, claims := range map[string]map[string]string{
		"subject": {"sub": "email"}, "audience": {"aud": "name"}, "groups": {"groups": "email"}, "address": {"email": "name"},
		"no source": {"roles": "shoe"}, "fixed source": {"roles": "iss"}, "no name": {"": "email"},
	} {
		f := prepared(t)
		f.want = func(r *Request) { r.Claims = claims }
		f.grant(callback)
		if _, err := compile(f.policy); err == nil {
			t.Errorf("%s: %v are accepted", name, claims)
		}
	}
}
