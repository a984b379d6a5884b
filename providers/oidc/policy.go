package oidc

import (
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/pages"
	"github.com/florete/florete/providers/server"
)

// Request is what a need requests. Issuer is part of it, so that hosts request anew when
// it changes.
type Request struct {
	Issuer       string     `json:"issuer"`
	Service      florete.ID `json:"service"`
	RedirectURIs []string   `json:"redirectURIs"`
}

// Policy is a policy's part for this kind, decoded.
type Policy struct {
	cluster, issuer string
	requests        server.Requests[registration]
	generations     map[florete.ID]int          // the highest that is granted, by service
	hosts           map[florete.ID][]florete.ID // that are granted the client, by service
}

// ends is whether the client of a service has ended by a revocation list: the service is revoked,
// or each host that has the client.
func (p *Policy) ends(list *florete.Revocations, service florete.ID) bool {
	return list.CheckID(service) != nil || !slices.ContainsFunc(p.hosts[service], func(host florete.ID) bool { return list.CheckID(host) == nil })
}

// Compile rejects a policy without a usable issuer, and clients that nobody could use.
func (p *Provider) Compile(policy florete.Policy) (any, error) { return compile(policy) }

func compile(policy florete.Policy) (*Policy, error) {
	var settings struct {
		Issuer string `json:"issuer"`
	}
	if err := server.Settings(policy, Name, &settings); err != nil {
		return nil, err
	}
	_, err := pages.ParseIssuer(settings.Issuer)
	if err != nil {
		return nil, fmt.Errorf("policy of %s: kind %q: %w", policy.Host, Name, err)
	}
	p := &Policy{cluster: policy.Cluster, issuer: settings.Issuer, generations: map[florete.ID]int{}, hosts: map[florete.ID][]florete.ID{}}
	p.requests, err = server.DecodeGrants(policy, Name, func(g florete.Grant) (registration, error) {
		r, err := decode(g, p.issuer)
		if err == nil {
			p.generations[r.Service] = max(p.generations[r.Service], r.Generation)
			p.hosts[r.Service] = append(p.hosts[r.Service], g.Caller)
		}
		return r, err
	})
	return p, err
}

// decode reads what a grant lets a host register with the issuer.
func decode(g florete.Grant, issuer string) (none registration, err error) {
	var r Request
	if err := florete.Decode(g.Request, &r); err != nil {
		return none, err
	}
	if _, err := florete.Dial(r.Service); err != nil || r.Service.Kind() != florete.KindService {
		return none, fmt.Errorf("service %q: only a service can be a client", r.Service)
	}
	if len(r.RedirectURIs) == 0 {
		return none, errors.New("redirectURIs: none given: nobody could come back from signing in")
	}
	for _, s := range r.RedirectURIs {
		// RFC 6749 section 3.1.2.
		if u, err := url.Parse(s); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.Fragment != "" {
			return none, fmt.Errorf("redirectURIs: %q: want an absolute http(s) URI without fragment", s)
		}
	}
	if r.Issuer != issuer {
		return none, fmt.Errorf("issuer %q: this provider is %s", r.Issuer, issuer)
	}
	return registration{Service: r.Service, RedirectURIs: r.RedirectURIs, Generation: g.Generation}, nil
}
