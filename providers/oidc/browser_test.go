package oidc

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/net/html"
	"golang.org/x/oauth2"
)

// service is the service outline with its delivered client.
type service struct {
	t        *testing.T
	http     *http.Client
	provider *oidc.Provider
	verifier *oidc.IDTokenVerifier
	oauth2.Config
}

// client reaches the issuer by its name, as a browser does through the forwarder. It stops at the
// redirect back to the service.
func (f *fixture) client() *http.Client {
	return &http.Client{
		Jar: must(cookiejar.New(nil)),
		Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				if addr != "auth.demo.flor.rete:80" {
					return nil, fmt.Errorf("left the issuer for %s", addr)
				}
				return new(net.Dialer).DialContext(ctx, network, f.listen)
			},
		},
		CheckRedirect: func(r *http.Request, _ []*http.Request) error {
			if r.URL.Host != "auth.demo.flor.rete" {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
}

func (f *fixture) service(delivered map[string]string) *service {
	f.t.Helper()
	s := &service{t: f.t, http: f.client()}
	p, err := oidc.NewProvider(s.ctx(), delivered["issuer"])
	if err != nil {
		f.t.Fatal(err)
	}
	s.provider = p
	s.verifier = p.Verifier(&oidc.Config{ClientID: delivered["clientId"]})
	s.Config = oauth2.Config{
		ClientID:     delivered["clientId"],
		ClientSecret: delivered["clientSecret"],
		Endpoint:     p.Endpoint(),
		RedirectURL:  callback,
		Scopes:       []string{oidc.ScopeOpenID, oidc.ScopeOfflineAccess, "email", "profile"},
	}
	return s
}

func (s *service) ctx() context.Context { return oidc.ClientContext(s.t.Context(), s.http) }

// page is a page that a browser shows.
type page struct {
	status   int
	title    string
	text     string
	location *url.URL // redirect to an address outside the issuer
	form     *form
}

type form struct {
	action *url.URL
	fields url.Values
}

func (s *service) read(r *http.Response, err error) page {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close()
	p := page{status: r.StatusCode}
	p.location, _ = r.Location()
	doc, err := html.Parse(r.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	labels := map[string]bool{}
	for n := range doc.Descendants() {
		switch {
		case n.Type == html.TextNode && n.Parent.Data == "title":
			p.title = n.Data
		case n.Type == html.TextNode:
			p.text += n.Data + " "
		case n.Type != html.ElementNode:
		case n.Data == "html" && p.location == nil && attr(n, "lang") == "":
			s.t.Errorf("%s: no language for screen readers", r.Request.URL.Path)
		case n.Data == "label":
			labels[attr(n, "for")] = true
		case n.Data == "form":
			p.form = &form{must(r.Request.URL.Parse(attr(n, "action"))), url.Values{}}
		case n.Data == "input":
			p.form.fields.Set(attr(n, "name"), attr(n, "value"))
			if attr(n, "type") != "hidden" && !labels[attr(n, "id")] {
				s.t.Errorf("%s: input %q has no label", r.Request.URL.Path, attr(n, "name"))
			}
		}
	}
	return p
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// begin sends the browser to the issuer, which shows the form to sign in.
func (s *service) begin(state, verifier string, more ...oauth2.AuthCodeOption) page {
	s.t.Helper()
	more = append(more, oauth2.S256ChallengeOption(verifier), oidc.Nonce("nonce-of-"+state))
	return s.read(s.http.Get(s.AuthCodeURL(state, more...)))
}

// submit fills in the form.
func (s *service) submit(p page, email, password string) page {
	s.t.Helper()
	if p.form == nil {
		s.t.Fatalf("status %d, no form: %s", p.status, p.text)
	}
	p.form.fields.Set("login", email)
	p.form.fields.Set("password", password)
	return s.read(s.http.PostForm(p.form.action.String(), p.form.fields))
}

// signIn signs in and returns the authorization code.
func (s *service) signIn(state, verifier string) (code string) {
	s.t.Helper()
	p := s.submit(s.begin(state, verifier), email, password)
	if p.location == nil || !strings.HasPrefix(p.location.String(), callback+"?") {
		s.t.Fatalf("status %d, sent to %v: %s", p.status, p.location, p.text)
	}
	q := p.location.Query()
	if q.Get("state") != state || q.Get("code") == "" {
		s.t.Fatalf("sent back with %v", q)
	}
	return q.Get("code")
}

// idToken returns the verified ID token of an answer.
func (s *service) idToken(t *oauth2.Token) *oidc.IDToken {
	s.t.Helper()
	raw, _ := t.Extra("id_token").(string)
	id, err := s.verifier.Verify(s.ctx(), raw)
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}
