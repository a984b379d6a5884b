package browser

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"html"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// outline is a web program: it signs people in by OpenID Connect (Core 1.0, code flow with PKCE)
// with what activation delivered, and remembers who they are by a cookie.
type outline struct {
	credential func(file string) (string, error)
	client     func() *http.Client // how it reaches the issuer

	mu       sync.Mutex
	signIns  map[string]string // state → PKCE verifier
	sessions map[string]string // cookie → name
}

const cookie = "__Host-session"

// serve runs what the services of forge stand for.
func (c *cluster) serve(t *testing.T) {
	t.Helper()
	app := &outline{signIns: map[string]string{}, sessions: map[string]string{}, client: func() *http.Client { return c.stranger("") },
		credential: func(file string) (string, error) { return c.forge.Value("oidc-outline", file) }}
	for address, h := range map[string]http.Handler{
		"127.0.0.1:4654": app,
		"127.0.0.1:4655": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "<title>wiki</title><p>of the cluster alone")
		}),
	} {
		l, err := net.Listen("tcp", address)
		check(t, err)
		s := &http.Server{Handler: h}
		go func() { _ = s.Serve(l) }()
		t.Cleanup(func() { s.Close() })
	}
}

func (o *outline) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var err error
	switch r.URL.Path {
	case "/auth/oidc.callback":
		err = o.callback(w, r)
	default:
		err = o.page(w, r)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
	}
}

// page is for those who have signed in; others are sent to do so.
func (o *outline) page(w http.ResponseWriter, r *http.Request) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c, err := r.Cookie(cookie); err == nil && o.sessions[c.Value] != "" {
		fmt.Fprintf(w, "<title>outline</title><h1>Outline</h1><p>Signed in as <b id=who>%s</b>.", html.EscapeString(o.sessions[c.Value]))
		return nil
	}
	_, _, config, err := o.config(r.Context())
	if err != nil {
		return err
	}
	state, verifier := rand.Text(), oauth2.GenerateVerifier()
	o.signIns[state] = verifier
	http.Redirect(w, r, config.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier), oidc.Nonce(state)), http.StatusFound)
	return nil
}

func (o *outline) callback(w http.ResponseWriter, r *http.Request) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	state := r.FormValue("state")
	verifier, ok := o.signIns[state]
	delete(o.signIns, state)
	if !ok {
		return errors.New("callback with an unknown state")
	}
	ctx, provider, config, err := o.config(r.Context())
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
	var claims struct{ Name string }
	if err := id.Claims(&claims); err != nil || id.Nonce != state {
		return errors.Join(err, errors.New("the ID token is not for this sign-in"))
	}
	session := rand.Text()
	o.sessions[session] = claims.Name
	http.SetCookie(w, &http.Cookie{Name: cookie, Value: session, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode})
	http.Redirect(w, r, "/", http.StatusSeeOther)
	return nil
}

// config is read each time: secrets are rotated.
func (o *outline) config(ctx context.Context) (context.Context, *oidc.Provider, *oauth2.Config, error) {
	values := map[string]string{}
	for _, file := range []string{"client-id", "client-secret", "issuer"} {
		v, err := o.credential(file)
		if err != nil {
			return nil, nil, nil, err
		}
		values[file] = strings.TrimSpace(v)
	}
	ctx = oidc.ClientContext(ctx, o.client())
	provider, err := oidc.NewProvider(ctx, values["issuer"])
	if err != nil {
		return nil, nil, nil, err
	}
	return ctx, provider, &oauth2.Config{ClientID: values["client-id"], ClientSecret: values["client-secret"], Endpoint: provider.Endpoint(),
		RedirectURL: "https://outline.example/auth/oidc.callback", Scopes: []string{oidc.ScopeOpenID, "profile"}}, nil
}
