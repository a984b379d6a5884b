package oidc

import (
	"context"
	"net/url"
	"strconv"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/api"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// Answer registers the client of a service, or finds it registered.
func (p *Provider) Answer(ctx context.Context, c server.Call) (server.Decision, error) {
	issuer, err := issuerOf(c.Policy)
	if err != nil {
		return server.Decision{}, err
	}
	want, err := parse(c.Request, issuer)
	if err != nil {
		return server.Decision{}, err
	}
	id := want.client()
	have, modified, err := p.clients.get(ctx, id)
	if err != nil {
		return server.Decision{}, err
	}
	d := server.Decision{
		Answer: api.Answer{Values: map[string]string{
			"issuer":       issuer,
			"clientId":     id,
			"clientSecret": p.clients.secret(id, want.Generation),
		}},
		If:     []store.Cond{{Key: key(id), Modified: modified}},
		Detail: map[string]string{"client": id, "generation": strconv.Itoa(want.Generation)},
	}
	if !want.equal(have) {
		d.Then = []store.Op{store.Put(key(id), want.encode())}
	}
	return d, nil
}

// parse reads what a request wants registered with the issuer.
func parse(r api.Request, issuer string) (registration, error) {
	malformed := func(format string, args ...any) (registration, error) {
		return registration{}, api.Errorf(api.Invalid, api.CodeMalformed, "need "+r.Need+": "+format, args...)
	}
	var body api.OIDCBody
	if err := florete.Decode(r.Body, &body); err != nil {
		return malformed("body: %v", err)
	}
	if _, err := florete.Dial(body.Service); err != nil || body.Service.Kind() != florete.KindService {
		return malformed("service %q: only a service can be a client", body.Service)
	}
	if len(body.RedirectURIs) == 0 {
		return malformed("redirectURIs: none given: nobody could come back from signing in")
	}
	for _, s := range body.RedirectURIs {
		// RFC 6749 section 3.1.2.
		if u, err := url.Parse(s); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.Fragment != "" {
			return malformed("redirectURIs: %q: want an absolute http(s) URI without fragment", s)
		}
	}
	if body.Issuer != issuer {
		return malformed("issuer %q: this provider is %s", body.Issuer, issuer)
	}
	return registration{body.Service, body.RedirectURIs, r.Generation}, nil
}
