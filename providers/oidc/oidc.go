// Package oidc is the kind of need that registers services as clients of an
// OpenID Connect provider (OpenID Connect Core 1.0), and that provider: Dex,
// embedded, on the provider's own state.
//
//	POST /oidc/request {"issuer":"http://…","service":"spiffe://demo.flor/service/outline","redirectURIs":["http://…"]}
//	→ clientId "outline.demo.flor.rete", clientSecret, issuer
//
// A service has one client, named as users name the service. Its secret is
// derived from the sealing key, the client and the generation, so that the same
// question has the same answer for ever, also for a host that was wiped. A higher
// generation rotates the secret and ends the lower ones.
//
// With "registration" in its settings the issuer is one of others, at which services are
// registered (RFC 7591). Then Dex does not run, and the secret is the issuer's.
package oidc

import (
	"cmp"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// Name is the name of the kind.
const Name = "oidc"

// Settings is the kind's section of the settings file.
type Settings struct {
	Listen string `json:"listen" want:"name a loopback host:port for the issuer's pages"`
	Users  string `json:"users" path:"" want:"name the file of those who can sign in"`

	// RegistrationToken is the file of the token that lets the provider register clients at an
	// issuer of others: "registration-token" beside the state, unless written. Without the file it
	// presents none.
	RegistrationToken string `json:"registrationToken" path:""`
}

// State is which clients there are. What people have signed in with is not remembered: they
// sign in again. Keys that sign tokens are made anew.
func (*Settings) State() server.State {
	return server.State{
		Remembered: []string{prefix},
		Ending:     map[string]time.Duration{endedPrefix: tokensLive, spentPrefix: codesLive},
		Secrets:    true,
	}
}

// Kind returns the Provider for a process.
func (s *Settings) Kind(p server.Process) server.AnyKind {
	return server.Any(New(Config{
		Store: p.Store, Key: p.Key, Policy: server.Compiled[Policy](p.Policies), Listen: s.Listen, Users: s.Users,
		Revoked: p.Policies.Revoked, Audit: p.Audit, Logger: p.Logger,
		RegistrationToken: cmp.Or(s.RegistrationToken, filepath.Join(p.Dir, "registration-token")),
	}))
}

// Config configures a Provider. All fields but Logger and RegistrationToken are required.
type Config struct {
	Store store.Store
	Key   *sealedstore.Key

	// Policy is the one in force, nil while that does not run this kind. A client lives
	// while it is granted there.
	Policy func() *Policy

	// Revoked is the revocation list in force, nil for none. A client ends with its service, and
	// with the last host that has it.
	Revoked func() *trust.Revocations

	// Listen is where the issuer's pages are served: plain HTTP, which is why
	// it must be a loopback host:port. The forwarder publishes it.
	Listen string

	// Users is the file of those who can sign in, HuJSON:
	// [{"email": …, "username": …, "userID": …, "hash": bcrypt, "groups": […]}]
	Users string

	// RegistrationToken is the file of what lets register at an issuer of others; need not be
	// there.
	RegistrationToken string

	// Audit is where sign-ins and tokens are written.
	Audit *server.Audit

	Logger *slog.Logger // nil for slog.Default()
}

// Provider is the kind "oidc".
type Provider struct {
	cfg     Config
	log     *slog.Logger
	clients clients

	registering chan struct{} // by who works at an issuer of others
}

var (
	_ server.Rotator[*Policy] = (*Provider)(nil)
	_ server.Runner           = (*Provider)(nil)
	_ server.Sealer           = (*Provider)(nil)
)

// New returns a Provider. What it needs from elsewhere Run looks for.
func New(cfg Config) *Provider {
	p := &Provider{cfg: cfg, log: cfg.Logger, clients: clients{cfg.Store, cfg.Key}, registering: make(chan struct{}, 1)}
	if p.log == nil {
		p.log = slog.Default()
	}
	return p
}

// Name returns the name of the kind.
func (p *Provider) Name() string { return Name }
