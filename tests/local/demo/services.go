package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/florete/florete/tests/kit"
)

// serve runs the programs that the example cluster's services stand for.
func (s *demo) serve(ctx context.Context) error {
	outline := &outline{credentials: func() (map[string]string, error) { return s.credentials("ursula") },
		client: func() (*http.Client, error) { return s.through("ursula", "service/outline") }}
	for address, handler := range map[string]http.Handler{
		"127.0.0.1:4654": outline,
		"127.0.0.1:4655": says("wiki"),
		"127.0.0.1:4657": says("metrics"),
	} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return fmt.Errorf("service: %w: is another demo running?", err)
		}
		server := &http.Server{Handler: handler}
		go func() { _ = server.Serve(l) }()
		context.AfterFunc(ctx, func() { _ = server.Close() })
	}
	return tellTime(ctx, "127.0.0.1:4656")
}

func says(what string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, what) })
}

// credentials are the OIDC client's, as delivered on a host.
func (s *demo) credentials(host string) (map[string]string, error) {
	c := map[string]string{}
	for _, file := range []string{"client-id", "client-secret", "issuer"} {
		v, err := s.hosts[host].Value("oidc-outline", file)
		if err != nil {
			return nil, err
		}
		c[file] = strings.TrimSpace(v)
	}
	return c, nil
}

// outline is a web program that logs people in by OIDC (OpenID Connect Core 1.0,
// authorization code flow with PKCE) with the credentials activation delivered.
type outline struct {
	credentials func() (map[string]string, error)
	client      func() (*http.Client, error)

	mu     sync.Mutex
	states map[string]string // state → PKCE verifier
}

func (o *outline) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var err error
	switch r.URL.Path {
	case "/login":
		err = o.login(w, r)
	case "/auth/oidc.callback":
		err = o.callback(w, r)
	default:
		fmt.Fprintln(w, "outline")
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
	}
}

func (o *outline) config(ctx context.Context) (context.Context, *oidc.Provider, *oauth2.Config, error) {
	c, err := o.credentials()
	if err != nil {
		return nil, nil, nil, err
	}
	client, err := o.client()
	if err != nil {
		return nil, nil, nil, err
	}
	ctx = oidc.ClientContext(ctx, client)
	provider, err := oidc.NewProvider(ctx, c["issuer"])
	if err != nil {
		return nil, nil, nil, err
	}
	return ctx, provider, &oauth2.Config{ClientID: c["client-id"], ClientSecret: c["client-secret"], Endpoint: provider.Endpoint(),
		RedirectURL: "http://outline." + kit.Domain + ".rete:4654/auth/oidc.callback", Scopes: []string{oidc.ScopeOpenID, "email", "profile"}}, nil
}

func (o *outline) login(w http.ResponseWriter, r *http.Request) error {
	_, _, config, err := o.config(r.Context())
	if err != nil {
		return err
	}
	state, verifier := rand.Text(), oauth2.GenerateVerifier()
	o.mu.Lock()
	if o.states == nil {
		o.states = map[string]string{}
	}
	o.states[state] = verifier
	o.mu.Unlock()
	http.Redirect(w, r, config.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier), oidc.Nonce(state)), http.StatusFound)
	return nil
}

func (o *outline) callback(w http.ResponseWriter, r *http.Request) error {
	state := r.FormValue("state")
	o.mu.Lock()
	verifier, ok := o.states[state]
	delete(o.states, state)
	o.mu.Unlock()
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
	var claims struct{ Email string }
	if err := id.Claims(&claims); err != nil || id.Nonce != state {
		return errors.Join(err, errors.New("the ID token is not for this login"))
	}
	fmt.Fprintf(w, "logged in as %s\n", claims.Email)
	return nil
}
