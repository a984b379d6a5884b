package oidc

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/coreos/go-oidc/v3/oidc"
	dexconn "github.com/dexidp/dex/connector"
	"golang.org/x/oauth2"

	"github.com/florete/florete/providers/outside"
)

// relyingParty is a client of an upstream issuer (OpenID Connect Core 1.0). It uses an HTTP client
// of package outside, because the issuer names the addresses of requests. These addresses must not
// lead to a place that only this host can reach. Dex's connector does not accept such an HTTP
// client.
type relyingParty struct {
	Upstream
	oauth    oauth2.Config
	verifier *oidc.IDTokenVerifier
	http     *http.Client
	pkce     bool // the issuer supports S256
}

// httpClient returns the client for requests to the issuer. An endpoint of the issuer may have
// another origin if it uses https. No redirect may lead to another origin.
func (u Upstream) httpClient() (*http.Client, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, err
	}
	if u.Roots != "" && !pool.AppendCertsFromPEM([]byte(u.Roots)) {
		return nil, errors.New("roots: no certificate in PEM")
	}
	client, err := outside.Config{TLS: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}, Anywhere: true}.Client(u.Issuer)
	if err != nil {
		return nil, err
	}
	client.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if from := via[0].URL.String(); !outside.SameOrigin(from, r.URL.String()) {
			return fmt.Errorf("%.200q redirects to another origin", from)
		}
		return nil
	}
	return client, nil
}

// newRelyingParty returns a client of an upstream issuer, after reading the issuer's discovery
// document.
func newRelyingParty(ctx context.Context, u Upstream, redirect, secret string) (*relyingParty, error) {
	client, err := u.httpClient()
	if err != nil {
		return nil, err
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, client)
	provider, err := oidc.NewProvider(ctx, u.Issuer)
	if err != nil {
		return nil, err
	}
	var metadata struct {
		Challenges []string `json:"code_challenge_methods_supported"`
		Methods    []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := provider.Claims(&metadata); err != nil {
		return nil, err
	}
	endpoint := provider.Endpoint()
	if slices.Contains(metadata.Methods, "client_secret_post") && !slices.Contains(metadata.Methods, "client_secret_basic") {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return &relyingParty{
		Upstream: u,
		oauth: oauth2.Config{
			ClientID: u.ClientID, ClientSecret: secret, Endpoint: endpoint, RedirectURL: redirect,
			Scopes: append([]string{oidc.ScopeOpenID}, u.Scopes...),
		},
		// Keys are read when a token needs them, by the client of this context.
		verifier: provider.VerifierContext(context.WithoutCancel(ctx), &oidc.Config{ClientID: u.ClientID}),
		http:     client,
		pkce:     slices.Contains(metadata.Challenges, "S256"),
	}, nil
}

// begun is the state of a sign-in from the redirect to the issuer until the browser returns.
type begun struct {
	Verifier string `json:"codeChallenge"` // of PKCE (RFC 7636)
}

// kept is the stored state of a person who signed in.
type kept struct {
	RefreshToken []byte
}

// LoginURL returns the address at which a browser signs in.
func (p *relyingParty) LoginURL(s dexconn.Scopes, callback, state string) (string, []byte, error) {
	if callback != p.oauth.RedirectURL {
		return "", nil, fmt.Errorf("callback %q, want %q", callback, p.oauth.RedirectURL)
	}
	var options []oauth2.AuthCodeOption
	if s.OfflineAccess {
		options = append(options, oauth2.AccessTypeOffline, oauth2.SetAuthURLParam("prompt", "consent"))
	}
	if !p.pkce {
		return p.oauth.AuthCodeURL(state, options...), nil, nil
	}
	b := begun{Verifier: oauth2.GenerateVerifier()}
	data, err := json.Marshal(b)
	return p.oauth.AuthCodeURL(state, append(options, oauth2.S256ChallengeOption(b.Verifier))...), data, err
}

// HandleCallback completes a sign-in at an external issuer. It exchanges the code in the callback
// request, and returns the identity of the person who signed in. If the issuer reports an error,
// HandleCallback returns it.
func (p *relyingParty) HandleCallback(_ dexconn.Scopes, data []byte, r *http.Request) (id dexconn.Identity, err error) {
	q := r.URL.Query()
	if code := q.Get("error"); code != "" {
		return id, fmt.Errorf("%.100s: %.500s", code, cmp.Or(q.Get("error_description"), "no description"))
	}
	var options []oauth2.AuthCodeOption
	if p.pkce {
		var b begun
		if err := json.Unmarshal(data, &b); err != nil || b.Verifier == "" {
			return id, fmt.Errorf("the sign-in has no PKCE verifier: %w", err)
		}
		options = append(options, oauth2.VerifierOption(b.Verifier))
	}
	ctx := context.WithValue(r.Context(), oauth2.HTTPClient, p.http)
	token, err := p.oauth.Exchange(ctx, q.Get("code"), options...)
	if err != nil {
		return id, fmt.Errorf("exchanging the code: %w", err)
	}
	return p.identity(ctx, token)
}

// Refresh reads the identity of a person from the upstream issuer again.
func (p *relyingParty) Refresh(ctx context.Context, _ dexconn.Scopes, id dexconn.Identity) (dexconn.Identity, error) {
	var k kept
	if err := json.Unmarshal(id.ConnectorData, &k); err != nil {
		return id, fmt.Errorf("stored state of the sign-in: %w", err)
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, p.http)
	token, err := p.oauth.TokenSource(ctx, &oauth2.Token{RefreshToken: string(k.RefreshToken)}).Token()
	if err != nil {
		return id, fmt.Errorf("refreshing: %w", err)
	}
	now, err := p.identity(ctx, token)
	if err == nil && now.UserID != id.UserID {
		return id, fmt.Errorf("the id_token of a refresh is of %.100q, want %.100q", now.UserID, id.UserID)
	}
	return now, err
}

// identity returns the identity in the ID token of a response.
func (p *relyingParty) identity(ctx context.Context, token *oauth2.Token) (id dexconn.Identity, err error) {
	text, _ := token.Extra("id_token").(string)
	if text == "" {
		return id, errors.New("the answer has no id_token, which has the groups")
	}
	verified, err := p.verifier.Verify(ctx, text)
	if err != nil {
		return id, fmt.Errorf("id_token: %w", err)
	}
	var claims struct {
		Name          string `json:"name"`
		Preferred     string `json:"preferred_username"`
		Email         string `json:"email"`
		EmailVerified *bool  `json:"email_verified"`
	}
	all := map[string]json.RawMessage{}
	if err := errors.Join(verified.Claims(&claims), verified.Claims(&all)); err != nil {
		return id, fmt.Errorf("id_token: %w", err)
	}
	switch {
	case claims.Name == "":
		err = errors.New(`the id_token has no claim "name": request scope "profile"`)
	case slices.Contains(p.Scopes, oidc.ScopeEmail) && (claims.Email == "" || claims.EmailVerified == nil):
		err = errors.New(`the id_token lacks claim "email" or "email_verified", although scope "email" is requested`)
	}
	if err != nil {
		return id, err
	}
	groups, err := groupsOf(all[p.Groups])
	if err != nil {
		return id, fmt.Errorf("claim %q: %w", p.Groups, err)
	}
	data, err := json.Marshal(kept{[]byte(token.RefreshToken)})
	return dexconn.Identity{
		UserID: verified.Subject, Username: claims.Name, PreferredUsername: claims.Preferred,
		Email: claims.Email, EmailVerified: claims.EmailVerified != nil && *claims.EmailVerified,
		Groups: groups, ConnectorData: data,
	}, err
}

// groupsOf parses a claim that contains groups. The claim is a name, a list of names, or a list of
// objects with a name.
func groupsOf(claim json.RawMessage) (groups []string, err error) {
	if claim == nil {
		return nil, nil
	}
	var one string
	if json.Unmarshal(claim, &one) == nil {
		return []string{one}, nil
	}
	var several []json.RawMessage
	if err := json.Unmarshal(claim, &several); err != nil {
		return nil, err
	}
	for _, each := range several {
		var named struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(each, &named.Name) != nil {
			if err := json.Unmarshal(each, &named); err != nil {
				return nil, err
			}
		}
		if named.Name != "" {
			groups = append(groups, named.Name)
		}
	}
	return groups, nil
}
