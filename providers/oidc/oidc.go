// Package oidc implements the kind of need "oidc", with which services are registered as clients of
// an OpenID Connect provider (OpenID Connect Core 1.0). It also implements that provider: an
// embedded Dex whose state is in the process's own store.
//
//	POST /oidc/request {"issuer":"http://…","service":"spiffe://demo.flor/service/outline","redirectURIs":["http://…"]}
//	→ clientId "outline.demo.flor.rete", clientSecret, issuer
//
// A service has one client, which users see under the service's name, or under a former one. Its secret is derived from
// the sealing key, the client, the generation and the rotation. The same request therefore always
// has the same answer, even if the host was wiped. A higher generation makes another secret and
// ends the secrets of lower generations.
//
// If the policy has a "registration", an external issuer replaces Dex. Services are registered at
// that issuer (RFC 7591), which makes their secrets.
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

// Name is the name of this kind of need.
const Name = "oidc"

// Settings is the section of the settings file for kind "oidc".
type Settings struct {
	// Listen is the loopback host:port of the issuer's pages. Users is the file of the people who
	// can sign in. Neither is used if the policy names an external issuer.
	Listen string `json:"listen" default:"127.0.0.1:5556"`
	Users  string `json:"users" path:"" default:"users.hujson"`

	// RegistrationToken is the path of the token that authorizes registration at an external
	// issuer. The default is "registration-token" beside the state. If the file does not exist,
	// clients are registered without a token.
	RegistrationToken string `json:"registrationToken" path:""`
}

// State returns the keys in the state store that belong in a backup: the registered clients.
// Sign-ins and signing keys are left out. After a restore, people sign in again and the provider
// creates new signing keys.
func (*Settings) State() server.State {
	return server.State{
		Remembered: []string{prefix},
		Ending:     map[string]time.Duration{endedPrefix: endedLives, spentPrefix: codesLive},
		Secrets:    true,
	}
}

// Kind returns the Provider that runs in the given process.
func (s *Settings) Kind(p server.Process) server.AnyKind {
	return server.Any(New(Config{
		Store: p.Store, Key: p.Key, Policy: server.Compiled[Policy](p.Policies), Listen: s.Listen, Users: s.Users,
		Revoked: p.Policies.Revoked, Audit: p.Audit, Logger: p.Logger,
		RegistrationToken: cmp.Or(s.RegistrationToken, filepath.Join(p.Dir, "registration-token")),
	}))
}

// Config configures a Provider. Logger and RegistrationToken are optional. Listen and Users are
// required only while the policy names no external issuer. All other fields are required.
type Config struct {
	Store store.Store
	Key   *sealedstore.Key

	// Policy returns the policy in force, or nil while the policy does not include this kind. A
	// client exists as long as the policy grants it.
	Policy func() *Policy

	// Revoked returns the revocation list in force, or nil. A client ends if its service is
	// revoked, or if all hosts that have it are revoked.
	Revoked func() *trust.Revocations

	// Listen is the loopback host:port of the issuer's pages. It must be a loopback address,
	// because the pages are served over plain HTTP. The forwarder publishes them with encryption.
	Listen string

	// Users is the path of the file that lists the people who can sign in, in HuJSON: [{"email": …,
	// "username": …, "userID": …, "hash": bcrypt, "groups": […]}]
	Users string

	// RegistrationToken is the path of the token that authorizes registration at an external
	// issuer. The file may be absent.
	RegistrationToken string

	// Audit is the audit log in which sign-ins and issued tokens are recorded.
	Audit *server.Audit

	Logger *slog.Logger // nil for slog.Default()
}

// Provider implements the kind of need "oidc".
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

// New returns a Provider. It reads no file and contacts no server. Run does both.
func New(cfg Config) *Provider {
	p := &Provider{cfg: cfg, log: cfg.Logger, clients: clients{cfg.Store, cfg.Key}, registering: make(chan struct{}, 1)}
	p.log = cmp.Or(p.log, slog.Default())
	return p
}

// Name returns the name of this kind of need, "oidc".
func (p *Provider) Name() string { return Name }
