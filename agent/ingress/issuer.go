package ingress

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

const (
	discoveryTime = time.Hour        // after which the discovery document is read again
	discoveryGap  = 5 * time.Second  // between attempts to read it
	askEvery      = time.Minute      // how often the issuer is asked about a person with a session
	askGap        = 10 * time.Second // between attempts, if the issuer does not answer
	askGrace      = time.Hour        // for which sessions go on if the issuer does not answer
	maxGroups     = 2000             // bytes of groups in a cookie
	maxAnswer     = 64 << 10
)

// PersonPath is the path at the issuer of a cluster at which a client asks about a person.
const PersonPath = "/person"

// issuerClient is the HTTP client for requests to issuers. It follows no redirects, which could lead
// codes and secrets elsewhere.
var issuerClient = &http.Client{
	Timeout:       askPatience,
	Transport:     &http.Transport{MaxIdleConnsPerHost: maxAsking, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// issuers keeps the discovery documents of issuers.
type issuers struct {
	mu  sync.Mutex
	all map[string]*issuer
}

func newIssuers() *issuers { return &issuers{all: map[string]*issuer{}} }

// issuer is an issuer with the discovery document that was read last.
type issuer struct {
	mu       sync.Mutex
	provider *oidc.Provider
	scopes   []string
	read     time.Time // when the document was read
	tried    time.Time
	err      error
}

// issuer returns the issuer of a site, after reading its discovery document if necessary.
func (g *Gate) issuer(ctx context.Context, s GateSite) (*issuer, error) {
	g.issuers.mu.Lock()
	i := g.issuers.all[s.Client.Issuer]
	if i == nil {
		i = &issuer{}
		g.issuers.all[s.Client.Issuer] = i
	}
	g.issuers.mu.Unlock()
	i.mu.Lock()
	defer i.mu.Unlock()
	if now := g.now(); now.Sub(i.read) > discoveryTime && now.Sub(i.tried) > discoveryGap {
		i.tried = now
		provider, scopes, err := discover(ctx, s.Client.Issuer)
		if i.err = err; err == nil {
			i.provider, i.scopes, i.read = provider, scopes, now
		}
	}
	if i.provider == nil {
		return nil, i.err
	}
	return &issuer{provider: i.provider, scopes: i.scopes}, nil
}

// discover reads the discovery document of an issuer.
func discover(ctx context.Context, at string) (provider *oidc.Provider, scopes []string, err error) {
	// The keys of the issuer are read later, in other requests.
	ctx = context.WithValue(context.WithoutCancel(ctx), oauth2.HTTPClient, issuerClient)
	if provider, err = oidc.NewProvider(ctx, at); err != nil {
		return nil, nil, err
	}
	var metadata struct {
		Scopes []string `json:"scopes_supported"`
	}
	if err := provider.Claims(&metadata); err != nil {
		return nil, nil, err
	}
	scopes = []string{oidc.ScopeOpenID}
	for _, scope := range []string{"email", "profile", "groups"} {
		if slices.Contains(metadata.Scopes, scope) {
			scopes = append(scopes, scope)
		}
	}
	return provider, scopes, nil
}

func (i *issuer) config(s GateSite) oauth2.Config {
	return oauth2.Config{ClientID: s.Client.ID, ClientSecret: s.Client.Secret, Endpoint: i.provider.Endpoint(), RedirectURL: "https://" + s.Name + CallbackPath, Scopes: i.scopes}
}

// url returns the address at the issuer at which a browser signs in.
func (i *issuer) url(s GateSite, state string, b begun) string {
	config := i.config(s)
	return config.AuthCodeURL(state, oidc.Nonce(b.Nonce), oauth2.S256ChallengeOption(b.Verifier))
}

// exchange exchanges a code for an ID token, and returns the session of the person.
func (g *Gate) exchange(ctx context.Context, s GateSite, code string, b begun) (in session, err error) {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, oauth2.HTTPClient, issuerClient), askPatience)
	defer cancel()
	done, err := g.acquire(ctx)
	if err != nil {
		return in, err
	}
	defer done()
	i, err := g.issuer(ctx, s)
	if err != nil {
		return in, err
	}
	config := i.config(s)
	tokens, err := config.Exchange(ctx, code, oauth2.VerifierOption(b.Verifier))
	if err != nil {
		return in, fmt.Errorf("exchanging the code: %w", err)
	}
	raw, _ := tokens.Extra("id_token").(string)
	token, err := i.provider.VerifierContext(context.WithValue(context.WithoutCancel(ctx), oauth2.HTTPClient, issuerClient), &oidc.Config{ClientID: s.Client.ID}).Verify(ctx, raw)
	if err != nil {
		return in, fmt.Errorf("ID token: %w", err)
	}
	if token.Nonce == "" || !equalSecrets(token.Nonce, b.Nonce) {
		return in, errors.New("ID token: it is not for this sign-in")
	}
	var c personClaims
	if err := token.Claims(&c); err != nil {
		return in, fmt.Errorf("ID token: %w", err)
	}
	now := g.now()
	in = c.session()
	in.Subject, in.Begun, in.Until = token.Subject, now.Unix(), now.Add(s.Session).Unix()
	if len(in.Email)+len(in.Name)+len(in.Subject) > maxGroups/2 || in.Subject == "" {
		return in, errors.New("ID token: its claims do not fit into a cookie")
	}
	if !s.Own {
		in.Until = min(in.Until, token.Expiry.Unix())
	}
	return in, nil
}

// personClaims are the claims of an ID token that describe a person (OpenID Connect Core 1.0
// section 5.1).
type personClaims struct {
	Email    string   `json:"email"`
	Verified *bool    `json:"email_verified"`
	Login    string   `json:"preferred_username"`
	Name     string   `json:"name"`
	Groups   []string `json:"groups"`
}

// session returns a session with the claims. It leaves out an email address that the issuer calls
// unverified.
func (c personClaims) session() session {
	in := session{Name: cmp.Or(c.Login, c.Name), Groups: listed(c.Groups)}
	if c.Verified == nil || *c.Verified {
		in.Email = c.Email
	}
	return in
}

// listed returns the groups that can be in a list with commas, up to a total length.
func listed(groups []string) (all []string) {
	length := 0
	for _, group := range groups {
		if length += len(group) + 3; length > maxGroups {
			break
		}
		if plainValue(group) && !strings.Contains(group, ",") {
			all = append(all, group)
		}
	}
	return all
}

// account is a person at a client.
type account struct{ client, subject string }

// visit is a session of a person. Sessions that began at the same second are one.
type visit struct {
	account
	begun int64
}

// person is the last answer of the issuer about a session.
type person struct {
	mu     sync.Mutex
	active bool
	groups []string
	known  bool      // groups are known
	at     time.Time // of the answer
	tried  time.Time
}

// stays reports whether a session has not ended, and updates its groups. If the issuer belongs to
// the cluster, stays asks it about the person.
func (g *Gate) stays(ctx context.Context, s GateSite, in *session) bool {
	if at, ok := g.ended.Get(account{s.Client.ID, in.Subject}); ok && !time.Unix(in.Begun, 0).After(at) {
		return false
	}
	if !s.Own {
		return true
	}
	key := visit{account{s.Client.ID, in.Subject}, in.Begun}
	p, ok := g.persons.Get(key)
	if !ok {
		p = &person{active: true, at: time.Unix(in.Begun, 0)}
		g.persons.Add(key, p)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := g.now()
	if p.active && now.Sub(p.at) >= askEvery && now.Sub(p.tried) >= askGap {
		p.tried = now
		about, err := g.ask(ctx, s, *in, false)
		if err == nil {
			p.active, p.at = about.Active, now
			if about.Groups != nil {
				p.groups, p.known = listed(*about.Groups), true
			}
		} else {
			g.log.Warn("cannot ask the issuer about a session", "name", s.Name, "error", err)
		}
	}
	if p.known {
		in.Groups = p.groups
	}
	return p.active && now.Sub(p.at) < askGrace
}

// end tells the issuer that a person signed out.
func (g *Gate) end(ctx context.Context, s GateSite, in session) error {
	if !s.Own {
		return nil
	}
	_, err := g.ask(ctx, s, in, true)
	return err
}

// about is the answer of an issuer about a person.
type about struct {
	Active bool      `json:"active"`
	Groups *[]string `json:"groups"` // nil if the issuer does not know them
}

// ask asks the issuer whether a session may go on, or tells it that the session ends.
func (g *Gate) ask(ctx context.Context, s GateSite, in session, end bool) (a about, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askPatience)
	defer cancel()
	done, err := g.acquire(ctx)
	if err != nil {
		return a, err
	}
	defer done()
	form := url.Values{"sub": {in.Subject}, "since": {strconv.FormatInt(in.Begun, 10)}}
	if end {
		form.Set("end", "true")
	}
	at := strings.TrimSuffix(s.Client.Issuer, "/") + PersonPath
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(form.Encode()))
	if err != nil {
		return a, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(url.QueryEscape(s.Client.ID), url.QueryEscape(s.Client.Secret))
	resp, err := issuerClient.Do(r)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case err != nil:
	case resp.StatusCode == http.StatusUnauthorized:
		a.Active = false // the client has ended, and its sessions with it
	case resp.StatusCode != http.StatusOK:
		err = fmt.Errorf("%s: %s", at, resp.Status)
	default:
		err = json.Unmarshal(b, &a)
	}
	return a, err
}
