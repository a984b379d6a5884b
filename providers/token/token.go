// Package token implements the kind of need "token", for tokens of tenants. A token lists the
// permissions of its bearer and is signed with a key of the tenant. To get a token, a subject that
// the tenant knows exchanges a proof of its identity (RFC 8693). It does so at a Unix socket that
// the forwarder publishes as a service:
//
//	POST /v1/tenants/acme/token/exchange
//	grant_type=urn:ietf:params:oauth:grant-type:token-exchange
//	subject_token=eyJ…          a token of a declared issuer (OpenID Connect), or a JWT-SVID of the cluster
//	subject_token_type=urn:ietf:params:oauth:token-type:jwt
//	requested=stream.publish stream.subscribe
//	resources=stream:acme/payments/*
//	→ {"access_token":"eyJ…","issued_token_type":"urn:ietf:params:oauth:token-type:access_token","token_type":"Bearer","expires_in":900,"scope":"stream.publish"}
//
// Without subject_token, the subject is the caller that the forwarder announces. The parameters
// requested and resources narrow the permissions that the tenant's rules give. If none remain, the
// answer is 403. Errors have the form of RFC 6749 section 5.2.
//
// Hosts request such tokens for their services, and also the keys that verify tokens:
//
//	POST /token/request {"issuer":"http://tokens.demo.flor.rete","tenant":"acme","id":"spiffe://demo.flor/service/wiki","requested":[],"resources":[]}
//	→ token
//	POST /token/request {"issuer":"http://tokens.demo.flor.rete","tenant":"acme"}
//	→ jwks
//
// If the policy permits it, operators change the rules of a tenant at run time through the API of
// kind config. They cannot change the rules in the policy itself.
//
// A token is signed with EdDSA. Its claims are iss and aud (the tenant's pages), sub, iat, exp, jti
// and permissions. Each tenant has its own sealedstore.SigningKeys. The pages
// /v1/tenants/acme/jwks.json and /v1/tenants/acme/.well-known/openid-configuration publish them.
package token

import (
	"cmp"
	"context"
	"log/slog"
	"path/filepath"
	"strconv"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/providers/announced"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/token/rules"
)

// Name is the name of this kind of need.
const Name = "token"

// Socket is the name of the Unix socket for token exchanges in the process's runtime directory.
const Socket = "token.sock"

const (
	keysLive = 10 * time.Minute // of an answer with the keys: hosts fetch them after half of it

	// repeated is the time for which the same request receives the recorded answer.
	repeated = 30 * time.Second
)

// Settings is the section of the settings file for kind "token".
type Settings struct {
	// Keys is the path of the keys that verify JWT-SVIDs of this trust domain. A need of kind jwt
	// delivers them. If Keys is empty, JWT-SVIDs are not accepted.
	Keys string `json:"keys" path:""`

	// Listen is the path of the Unix socket at which the forwarder calls this process. Forwarder is
	// the Unix account of the forwarder. The defaults suit the units of a host.
	Listen    string `json:"listen" path:""`
	Forwarder string `json:"forwarder"`

	// Control is the path of the Unix socket at which the process of kind config calls this
	// process. Config is the Unix account of that process. The defaults suit the units of a host.
	Control string `json:"control" path:""`
	Config  string `json:"config"`

	// Bootstrap is the path of a Unix socket at which root of this host names the first
	// administrators of tenants. The socket must be in a directory of its own. If Bootstrap is
	// empty, there is no such socket.
	Bootstrap string `json:"bootstrap" path:""`
}

// Kind returns the kind of need that runs in the given process.
func (s *Settings) Kind(p server.Process) server.AnyKind { return server.Any(s.tokens(p)) }

func (s *Settings) tokens(p server.Process) *Tokens {
	return New(Config{
		Store: p.Store, Key: p.Key, Policy: server.Compiled[Policy](p.Policies), SVIDKeys: s.Keys,
		Listen:    cmp.Or(s.Listen, filepath.Join("/run", p.Instance.Unit("provider-"+Name), Socket)),
		Forwarder: cmp.Or(s.Forwarder, p.Instance.String()),
		Control:   cmp.Or(s.Control, filepath.Join("/run", p.Instance.Unit("provider-"+Name), announced.OperatorSocket)),
		Operators: cmp.Or(s.Config, p.Instance.Unit("provider-config")),
		Bootstrap: s.Bootstrap,
		Policies:  p.Policies, Audit: p.Audit, Logger: p.Logger,
	})
}

// Config configures Tokens. The fields after SVIDKeys are required only for Run.
type Config struct {
	Store store.Store
	Key   *sealedstore.Key

	// Policy returns the policy in force, or nil while the policy does not include this kind.
	Policy func() *Policy

	SVIDKeys  string // file with the keys that verify JWT-SVIDs of the trust domain; empty for none
	Listen    string // Unix socket to which the forwarder connects
	Forwarder string // account that alone may connect to Listen
	Control   string // Unix socket to which the process of kind config connects
	Operators string // account that alone may connect to Control
	Bootstrap string // Unix socket for root; empty for none
	Policies  *server.Policies
	Audit     *server.Audit
	Logger    *slog.Logger
}

// Tokens implements the kind of need "token".
type Tokens struct {
	Config
	tenants tenants
	meters  meters
	issuers issuers
}

var (
	_ server.Kind[*Policy] = (*Tokens)(nil)
	_ server.Runner        = (*Tokens)(nil)
	_ server.Sealer        = (*Tokens)(nil)
)

// New returns Tokens with a configuration.
func New(c Config) *Tokens {
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return &Tokens{Config: c, tenants: tenants{store: c.Store, key: c.Key}}
}

// Name returns the name of this kind of need, "token".
func (t *Tokens) Name() string { return Name }

// Answer issues a token for a service. The token contains the permissions that the tenant's rules
// give to the service, limited to those in the request. For a request that names no service, the
// answer contains the keys that verify the tenant's tokens.
func (t *Tokens) Answer(ctx context.Context, p *Policy, c server.Call) (server.Decision, error) {
	r := p.requests.Of(c)
	tenant := p.tenants[r.Tenant]
	ring, change, err := t.tenants.keys(tenant).Due(ctx, c.Now, p.generation)
	if err != nil {
		return server.Decision{}, err
	}
	d := server.Decision{If: change.If, Then: change.Then, Repeated: c.Now.Add(repeated)}
	if r.ID.IsZero() {
		d.Answer = hostapi.Answer{Values: map[string]string{"jwks": string(ring.JWKS())}, Expires: c.Now.Add(keysLive).Unix()}
		return d, nil
	}
	if err := hostapi.RefuseIssue(c.Revoked.CheckIssued(r.ID, c.Caller.Name(), c.Now)); err != nil {
		return server.Decision{}, err
	}
	issued, err := t.issue(ctx, issuing{tenant: tenant, ring: ring, sub: r.ID.String(), subjects: []string{r.ID.String()},
		narrow: rules.Narrow{Actions: r.Requested, Objects: r.objects}, now: c.Now})
	if err != nil {
		return server.Decision{}, err
	}
	d.If, d.Then = append(d.If, issued.If...), append(d.Then, issued.Then...)
	d.Answer = hostapi.Answer{Values: map[string]string{"token": issued.token}, Expires: issued.until.Unix()}
	d.Detail = issued.detail()
	return d, nil
}

// detail returns the details of a token for the audit log.
func (i issued) detail() map[string]string {
	permissions := strictjson.Encode(i.permissions)
	return map[string]string{
		"tenant": i.tenant, "subject": i.sub, "token": i.id, "until": i.until.UTC().Format(time.RFC3339),
		"permissions": strconv.Itoa(len(i.permissions)), "first": string(permissions[:min(len(permissions), 200)]),
	}
}

// Reseal encrypts the stored signing keys again, with the newest secret of the sealing key. Keys
// that this secret has encrypted already are left unchanged.
func (t *Tokens) Reseal(ctx context.Context) error {
	return sealedstore.Walk(ctx, t.Store, keysPrefix, t.Key.Reseal)
}
