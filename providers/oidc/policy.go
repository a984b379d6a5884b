package oidc

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/announced"
	"github.com/florete/florete/providers/server"
)

// Request describes the OIDC client that a service needs. It contains the issuer, so a change of
// the issuer changes the request, and hosts then send it again.
type Request struct {
	Issuer       string    `json:"issuer"`
	Service      spiffe.ID `json:"service"`
	RedirectURIs []string  `json:"redirectURIs"`

	// The following fields are empty, nil or false if the topology does not set them. Client is an ID
	// of the service under another name, by which the issuer knows the client: a renamed service
	// keeps its client in this way.
	Client                 spiffe.ID `json:"client,omitzero"`
	PostLogoutRedirectURIs []string  `json:"postLogoutRedirectURIs,omitempty"` // URIs to which signing out may redirect
	Scopes                 []string  `json:"scopes,omitempty"`                 // scopes that the client may request; nil for all
	AllowedGroups          []string  `json:"allowedGroups,omitempty"`          // groups whose members may sign in; nil for everybody
	Public                 bool      `json:"public,omitempty"`                 // the client has no secret, because it could not keep it

	// Claims maps further claims of the client's tokens to the claims that they are copies of.
	// Groups maps the group names that the service knows to the issuer's groups. If it is set, the
	// tokens contain no other groups.
	Claims map[string]string   `json:"claims,omitempty"`
	Groups map[string][]string `json:"groups,omitempty"`
}

// registration returns the record of the requested client.
func (r Request) registration(generation int) registration {
	return registration{Service: cmp.Or(r.Client, r.Service), RedirectURIs: r.RedirectURIs, Generation: generation, public: r.Public}
}

// Policy contains the issuer, the ways in which people sign in, and the OIDC clients of services.
// Compile decodes it from the policy of the provider host.
type Policy struct {
	cluster, issuer string

	// registration is the URL at which an external issuer registers clients. It is empty if this
	// process is the issuer. registrar names the protocol of that URL, and is empty for RFC 7591.
	registration, registrar string

	connectors []connector

	// made contains the name of the cluster and the settings of the kind. If it changes, the
	// provider serves the pages of a new issuer.
	made string

	requests server.Requests[registration]

	// These maps have as keys the services to whose registrations the grants belong. The values are
	// the highest generation that is granted, the hosts that may request the client, and the names
	// under which the service signs people in with the client.
	generations     map[spiffe.ID]int
	hosts, services map[spiffe.ID][]spiffe.ID

	// clients contains the granted request for each client ID.
	clients map[string]Request
}

// ends reports whether a revocation list ends the client of a service. A list does so if it revokes
// the service under any of its names, or if it revokes every host that has the client.
func (p *Policy) ends(list *trust.Revocations, service spiffe.ID) bool {
	revoked := func(id spiffe.ID) bool { return list.CheckID(id) != nil }
	return revoked(service) || slices.ContainsFunc(p.services[service], revoked) || !slices.ContainsFunc(p.hosts[service], func(host spiffe.ID) bool { return list.CheckID(host) == nil })
}

// Compile decodes the policy of a provider host. It returns an error if the issuer or its settings
// are not valid, or if nobody could sign in to one of the services.
func (p *Provider) Compile(policy document.Policy) (*Policy, error) { return compile(policy) }

func compile(policy document.Policy) (*Policy, error) {
	var settings struct {
		Issuer       string               `json:"issuer"`
		Registration string               `json:"registration,omitempty"`
		Registrar    string               `json:"registrar,omitempty"`
		LDAP         map[string]Directory `json:"ldap,omitempty"`
		Upstream     map[string]Upstream  `json:"upstream,omitempty"`
	}
	if err := server.Settings(policy, Name, &settings); err != nil {
		return nil, err
	}
	if err := validIssuer(settings.Issuer, settings.Registration != ""); err != nil {
		return nil, fmt.Errorf("policy of %s: kind %q: %w", policy.Host, Name, err)
	}
	if err := validRegistrar(settings.Registrar, settings.Registration); err != nil {
		return nil, fmt.Errorf("policy of %s: kind %q: registrar: %w", policy.Host, Name, err)
	}
	if settings.Registrar == registrarRFC7591 {
		settings.Registrar = ""
	}
	if settings.Registration != "" {
		if err := validRegistration(settings.Registration, len(settings.LDAP)+len(settings.Upstream)); err != nil {
			return nil, fmt.Errorf("policy of %s: kind %q: registration: %w", policy.Host, Name, err)
		}
	}
	p := &Policy{
		cluster: policy.Cluster, issuer: settings.Issuer, registration: settings.Registration, registrar: settings.Registrar, made: policy.Cluster + string(policy.Kinds[Name]),
		generations: map[spiffe.ID]int{}, hosts: map[spiffe.ID][]spiffe.ID{}, services: map[spiffe.ID][]spiffe.ID{}, clients: map[string]Request{},
	}
	var err error
	if p.connectors, err = connectors(settings.Issuer, settings.LDAP, settings.Upstream); err != nil {
		return nil, fmt.Errorf("policy of %s: kind %q: %w", policy.Host, Name, err)
	}
	p.requests, err = server.DecodeGrants(policy, Name, func(g document.Grant) (registration, error) {
		want, err := decode(g, p.issuer)
		if err == nil && p.registration != "" {
			err = validAt(p.registrar, want)
		}
		r := want.registration(g.Generation)
		if err == nil {
			known := want // as the issuer knows the client, whatever the service is called now
			known.Service, known.Client = r.Service, spiffe.ID{}
			p.clients[r.client()] = known
			p.generations[r.Service] = max(p.generations[r.Service], r.Generation)
			p.hosts[r.Service] = append(p.hosts[r.Service], g.Caller)
			p.services[r.Service] = append(p.services[r.Service], want.Service)
		}
		return r, err
	})
	return p, err
}

// sealed matches addresses to which a secret can be sent without crossing a network unencrypted.
// The compiler applies the same rule.
var sealed = regexp.MustCompile(`^(https://.*|http://([^/?]*` + regexp.QuoteMeta(spiffe.Suffix) + `|localhost|127\.[0-9.]+|\[::1\])(:[0-9]+)?([/?].*)?)$`)

// validIssuer returns an error unless the URL of an issuer is valid. The URL of the embedded issuer
// has no path, because the pages have paths. The URL of an external issuer may have a path, such as
// that of a realm. The argument ofOthers is true for an external issuer.
func validIssuer(issuer string, ofOthers bool) error {
	if !ofOthers {
		_, err := announced.ParseIssuer(issuer)
		return err
	}
	u, err := url.Parse(issuer)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || strings.ContainsAny(issuer, "?#") {
		return fmt.Errorf("issuer %q: want an http(s) address without query and fragment (OpenID Connect Discovery 1.0 section 2)", issuer)
	}
	return nil
}

func validRegistration(at string, connectors int) error {
	if u, err := url.Parse(at); err != nil || u.Host == "" || !sealed.MatchString(at) {
		return fmt.Errorf("%q: want an https address", at)
	}
	if connectors > 0 {
		return errors.New("an issuer of others has its own people: want neither ldap nor upstream beside it")
	}
	return nil
}

// decode decodes the request of a grant and checks it for an issuer.
func decode(g document.Grant, issuer string) (r Request, err error) {
	if err := strictjson.Decode(g.Request, &r); err != nil {
		return r, err
	}
	for _, id := range []spiffe.ID{r.Service, cmp.Or(r.Client, r.Service)} {
		if _, err := spiffe.Dial(id); err != nil || id.Kind() != spiffe.KindService {
			return r, fmt.Errorf("service %q: only a service can be a client", id)
		}
	}
	if len(r.RedirectURIs) == 0 {
		return r, errors.New("redirectURIs: none given: nobody could come back from signing in")
	}
	for _, s := range slices.Concat(r.RedirectURIs, r.PostLogoutRedirectURIs) {
		// RFC 6749 section 3.1.2.
		if u, err := url.Parse(s); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.Fragment != "" {
			return r, fmt.Errorf("redirectURIs: %q: want an absolute http(s) URI without fragment", s)
		}
	}
	if r.Scopes != nil && !slices.Contains(r.Scopes, "openid") {
		return r, fmt.Errorf("scopes %q: want openid among them (OpenID Connect Core 1.0 section 3.1.2.1)", r.Scopes)
	}
	for _, s := range r.Scopes {
		if !scopePattern.MatchString(s) {
			return r, fmt.Errorf("scopes: %q: want 1 to 128 letters, digits and . _ : / -", s)
		}
	}
	if err := validClaims(r.Claims); err != nil {
		return r, err
	}
	if r.Issuer != issuer {
		return r, fmt.Errorf("issuer %q: this provider is %s", r.Issuer, issuer)
	}
	return r, nil
}

// scopePattern matches the names of scopes. The compiler applies the same rule.
var scopePattern = regexp.MustCompile(`^[A-Za-z0-9._:/-]{1,128}$`)

// scopes lists the scopes that clients can request unless the policy says otherwise.
var scopes = []string{"openid", "email", "groups", "profile", "offline_access"}

// allows reports whether a person with these groups may sign in at a client.
func (p *Policy) allows(client string, groups []string) bool {
	if p == nil {
		return false
	}
	want := p.clients[client].AllowedGroups
	return len(want) == 0 || slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(want, g) })
}
