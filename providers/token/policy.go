package token

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/providers/announced"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/token/rules"
)

// Request describes a token that the policy lets a host request for a service. The token gives the
// service permissions in one tenant. If ID is zero, the request is for the keys that verify the
// tenant's tokens.
type Request struct {
	Issuer    string    `json:"issuer"` // providers.token.issuer
	Tenant    string    `json:"tenant"`
	ID        spiffe.ID `json:"id,omitzero"`
	Requested []string  `json:"requested,omitempty"` // requested actions; empty for all that are permitted
	Resources []string  `json:"resources,omitempty"` // requested objects; empty for all that are permitted

	objects []rules.Object
}

// Policy contains the tenants of the cluster, and the tokens that hosts may request. Compile
// decodes it from the policy of the provider host.
type Policy struct {
	issuer     *url.URL
	generation int // of the signing keys, at least
	tenants    map[string]*Tenant
	requests   server.Requests[Request]
}

// settings contains the settings of the kind in a policy.
type settings struct {
	Issuer     string            `json:"issuer"`
	Generation int               `json:"generation"`
	Tenants    map[string]Tenant `json:"tenants"`
}

// Tenant is a set of rules about who may do what, with the external issuers and limits that belong
// to it, as the policy declares it.
type Tenant struct {
	Namespaces []string          `json:"namespaces"`
	Issuers    map[string]Issuer `json:"issuers"`
	rules.Set
	Lifetime        int64 `json:"lifetime"` // lifetime of tokens, in seconds
	TokensPerMinute int   `json:"tokensPerMinute"`

	// RuntimeRules limits the number of rules of a tenant whose rules operators can change at run
	// time. It is nil if operators cannot change them.
	RuntimeRules *Quota `json:"runtimeRules,omitempty"`

	name     string
	issuer   string       // of its tokens
	names    rules.Tenant // what its rules may name
	compiled *rules.Rules
	known    *atomic.Pointer[inForce] // with the rules of run time, as they were last
}

// Issuer is an external issuer of tokens. Callers can exchange its tokens for tokens of a tenant.
type Issuer struct {
	Issuer       string   `json:"issuer"`
	Audiences    []string `json:"audiences"` // audiences, one of which a token must have
	SubjectClaim string   `json:"subjectClaim"`
	GroupsClaim  string   `json:"groupsClaim"` // claim that contains the groups; empty for none
	Discovery    string   `json:"discovery"`   // address below which the discovery document is; empty for Issuer
	JWKS         string   `json:"jwks"`        // address of the issuer's keys; empty to use that in the discovery document
}

// longest is the longest lifetime of a token.
const longest = time.Hour

// Compile decodes the policy of a provider host. It returns an error if the issuer is not valid, if
// a rule names another tenant or an unknown name, or if the policy permits a token of an unknown
// tenant.
func (t *Tokens) Compile(policy document.Policy) (*Policy, error) {
	var s settings
	if err := server.Settings(policy, Name, &s); err != nil {
		return nil, err
	}
	p := &Policy{generation: s.Generation, tenants: map[string]*Tenant{}}
	refuse := func(err error) error {
		return fmt.Errorf("policy of %s: kind %q: %w", policy.Host, Name, err)
	}
	var err error
	if p.issuer, err = announced.ParseIssuer(s.Issuer); err != nil {
		return nil, refuse(err)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Tenants)) {
		tenant := s.Tenants[name]
		if err := tenant.compile(name, policy.TrustDomain, s.Issuer); err != nil {
			return nil, refuse(err)
		}
		p.tenants[name] = &tenant
	}
	p.requests, err = server.DecodeGrants(policy, Name, func(g document.Grant) (r Request, err error) {
		if err = strictjson.Decode(g.Request, &r); err != nil {
			return r, err
		}
		tenant := p.tenants[r.Tenant]
		switch {
		case r.Issuer != s.Issuer:
			return r, fmt.Errorf("issuer %q: this provider is %s", r.Issuer, s.Issuer)
		case tenant == nil:
			return r, fmt.Errorf("tenant %q: not one of the policy", r.Tenant)
		case !r.ID.IsZero() && (r.ID.TrustDomain() != policy.TrustDomain || r.ID.Kind() != spiffe.KindService):
			return r, fmt.Errorf("id %q: want a service of %s", r.ID, policy.TrustDomain)
		case r.ID.IsZero() && len(r.Requested)+len(r.Resources) > 0:
			return r, fmt.Errorf("the keys of tenant %s, with what to request of its tokens", r.Tenant)
		}
		n, err := narrow(r.Requested, r.Resources)
		r.objects = n.Objects
		return r, err
	})
	return p, err
}

func (t *Tenant) compile(name, trustDomain, issuer string) (err error) {
	t.name, t.issuer, t.known = name, issuer+path(name), new(atomic.Pointer[inForce])
	t.names = rules.Tenant{Name: name, TrustDomain: trustDomain, Namespaces: t.Namespaces, Issuers: slices.Sorted(maps.Keys(t.Issuers))}
	life := time.Duration(t.Lifetime) * time.Second
	switch {
	case invalidTenant(name):
		return fmt.Errorf("tenant %q: not the name of one", name)
	case life <= 0 || life > longest:
		return fmt.Errorf("tenant %s: lifetime of %d seconds, want 1 to %d", name, t.Lifetime, int(longest.Seconds()))
	case t.TokensPerMinute < 1:
		return fmt.Errorf("tenant %s: %d tokens per minute, want at least one", name, t.TokensPerMinute)
	}
	by := map[string]string{}
	for _, n := range slices.Sorted(maps.Keys(t.Issuers)) {
		i := t.Issuers[n]
		if other, twice := by[i.Issuer]; twice {
			return fmt.Errorf("tenant %s: issuers %s and %s are both %s", name, other, n, i.Issuer)
		}
		by[i.Issuer] = n
		if len(i.Audiences) == 0 || i.SubjectClaim == "" || i.Issuer == "" {
			return fmt.Errorf("tenant %s: issuer %s: want a URL, audiences and the claim for subjects", name, n)
		}
	}
	t.compiled, err = rules.Compile(t.names, t.Set)
	return err
}

func invalidTenant(name string) bool {
	_, err := rules.ParseObject(rules.TenantObject(name).String())
	return err != nil
}

// path returns the path of a tenant's pages.
func path(tenant string) string { return "/v1/tenants/" + tenant }

// narrow parses the actions and objects to which a request narrows its token.
func narrow(actions, objects []string) (n rules.Narrow, err error) {
	for _, a := range actions {
		if _, err := rules.ParseAction(a); err != nil {
			return n, fmt.Errorf("requested: %w", err)
		}
		n.Actions = append(n.Actions, a)
	}
	for _, s := range objects {
		o, err := rules.ParseObject(s)
		if err != nil {
			return n, fmt.Errorf("resources: %w", err)
		}
		n.Objects = append(n.Objects, o)
	}
	return n, nil
}
