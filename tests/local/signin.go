package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// SignIn lets people sign in to a web program with OpenID Connect, by the code flow with PKCE
// (OpenID Connect Core 1.0 section 3.1). It uses the OIDC client that activation has written on the
// program's host.
type SignIn struct {
	Host     *Host
	Need     string                       // ID of the need that delivers the client
	Client   func() (*http.Client, error) // returns an HTTP client that reaches the issuer
	Redirect string                       // redirect URI of the client
	Page     string                       // content of all pages that do not belong to the sign-in

	mu    sync.Mutex
	begun map[string]string // PKCE verifier by state
}

// ServeHTTP serves the pages of the program. The page /login begins a sign-in, and the page of the
// redirect URI says who has signed in.
func (s *SignIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var err error
	switch {
	case r.URL.Path == "/login":
		err = s.Begin(w, r)
	case strings.HasSuffix(s.Redirect, r.URL.Path) && r.URL.Path != "/":
		var claims struct{ Email string }
		if err = s.End(r, &claims); err == nil {
			fmt.Fprintf(w, "logged in as %s\n", claims.Email)
		}
	default:
		fmt.Fprintln(w, s.Page)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
	}
}

// OIDCClient returns the OIDC client that activation has written on the host for a need. The keys
// of the map are file names: client-id, client-secret and issuer.
func (h *Host) OIDCClient(need string) (map[string]string, error) {
	values := map[string]string{}
	for _, file := range []string{"client-id", "client-secret", "issuer"} {
		v, err := h.Value(need, file)
		if err != nil {
			return nil, err
		}
		values[file] = strings.TrimSpace(v)
	}
	return values, nil
}

// Begin begins a sign-in by redirecting the browser to the issuer.
func (s *SignIn) Begin(w http.ResponseWriter, r *http.Request) error {
	_, _, config, err := s.config(r.Context())
	if err != nil {
		return err
	}
	state, verifier := rand.Text(), oauth2.GenerateVerifier()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun == nil {
		s.begun = map[string]string{}
	}
	s.begun[state] = verifier
	http.Redirect(w, r, config.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier), oidc.Nonce(state)), http.StatusFound)
	return nil
}

// End completes a sign-in when the issuer has redirected the browser back. Its argument is the
// request of the browser. End exchanges the code in the request for an ID token, and decodes the
// claims in the token into claims.
func (s *SignIn) End(r *http.Request, claims any) error {
	state := r.FormValue("state")
	s.mu.Lock()
	verifier, ok := s.begun[state]
	delete(s.begun, state)
	s.mu.Unlock()
	if !ok {
		return errors.New("callback with an unknown state")
	}
	ctx, provider, config, err := s.config(r.Context())
	if err != nil {
		return err
	}
	token, err := config.Exchange(ctx, r.FormValue("code"), oauth2.VerifierOption(verifier))
	if err != nil {
		return err
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := provider.Verifier(&oidc.Config{ClientID: config.ClientID}).Verify(ctx, raw)
	if err != nil {
		return err
	}
	if id.Nonce != state {
		return errors.New("the ID token is not for this sign-in")
	}
	return id.Claims(claims)
}

// config returns the configuration of the sign-in. It reads the delivered OIDC client for each
// sign-in, because the client's secret is rotated.
func (s *SignIn) config(ctx context.Context) (context.Context, *oidc.Provider, *oauth2.Config, error) {
	values, err := s.Host.OIDCClient(s.Need)
	if err != nil {
		return nil, nil, nil, err
	}
	client, err := s.Client()
	if err != nil {
		return nil, nil, nil, err
	}
	ctx = oidc.ClientContext(ctx, client)
	provider, err := oidc.NewProvider(ctx, values["issuer"])
	if err != nil {
		return nil, nil, nil, err
	}
	return ctx, provider, &oauth2.Config{ClientID: values["client-id"], ClientSecret: values["client-secret"], Endpoint: provider.Endpoint(),
		RedirectURL: s.Redirect, Scopes: []string{oidc.ScopeOpenID, "email", "profile"}}, nil
}

var (
	form   = regexp.MustCompile(`(?i)<form[^>]*action="([^"]*)"`)
	loginN = regexp.MustCompile(`(?i)<input[^>]*name="(login|password)"`)
)

// LogIn opens the login page of a web program in a browser, and submits the form of the issuer to
// which the program redirects. It returns the page that follows, and its URL.
func LogIn(browser *http.Client, login, email, password string) (page string, at *url.URL, err error) {
	page, at, err = fetch(browser.Get(login))
	if err != nil {
		return "", nil, err
	}
	if len(loginN.FindAllString(page, -1)) != 2 {
		return "", nil, fmt.Errorf("no login form at %s: %.200s", at, page)
	}
	action := at
	if m := form.FindStringSubmatch(page); m != nil && m[1] != "" {
		if action, err = at.Parse(html.UnescapeString(m[1])); err != nil {
			return "", nil, err
		}
	}
	return fetch(browser.PostForm(action.String(), url.Values{"login": {email}, "password": {password}}))
}

func fetch(r *http.Response, err error) (string, *url.URL, error) {
	if err != nil {
		return "", nil, err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %.300s", r.Request.URL, r.Status, b)
	}
	return strings.TrimSpace(string(b)), r.Request.URL, err
}
