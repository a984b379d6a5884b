// Package jwt implements the kind of need that gives services tokens in the form of JWT-SVIDs
// (SPIFFE JWT-SVID). It also serves the pages with which others verify the tokens (OpenID Connect
// Discovery 1.0):
//
//	POST /jwt/request {"issuer":"https://…"}
//	→ jwks, the public keys
//	POST /jwt/request {"issuer":"https://…","id":"spiffe://demo.flor/service/wiki","audiences":["vault"]}
//	→ tokens, a JSON object of a token for each audience
//
// A token is signed with ES256 and is valid for five minutes. Its claims are iss, sub (the SPIFFE
// ID), aud (one audience), iat, exp, and florete_node (the node that requested the token). The
// signing keys are sealedstore.SigningKeys.
package jwt

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/announced"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// Name is the name of the kind.
const Name = document.KindJWT

// keysAt is the store key under which the signing keys are sealed.
const keysAt = "jwt/keys"

const (
	tokensLive = 5 * time.Minute
	keysLive   = 10 * time.Minute // of an answer with the keys: hosts fetch them after half of it

	// repeated is the time for which repeated requests receive the same tokens. Hosts renew a token
	// after half of its life.
	repeated = 30 * time.Second
)

// Settings is the kind's section of the settings file.
type Settings struct {
	// Listen is the loopback host:port at which the issuer's pages are served.
	Listen string `json:"listen" default:"127.0.0.1:5557"`
}

// Kind returns the kind "jwt" for a provider process.
func (s *Settings) Kind(p server.Process) server.AnyKind {
	return server.Any(New(Config{
		Store: p.Store, Key: p.Key, Policy: server.Compiled[Policy](p.Policies), Listen: s.Listen, Logger: p.Logger,
	}))
}

// Config configures an Issuer. All fields except Logger are required.
type Config struct {
	Store store.Store
	Key   *sealedstore.Key

	// Policy returns the policy in force, or nil while the policy does not include this kind.
	Policy func() *Policy

	// Listen is the loopback host:port of the issuer's pages. The forwarder publishes these pages.
	Listen string

	Logger *slog.Logger // nil for slog.Default()
}

// Issuer implements the kind "jwt". It issues JWT-SVIDs, which are tokens that prove a SPIFFE ID,
// and serves the OpenID Connect discovery pages with which others verify them.
type Issuer struct {
	Config
	keys sealedstore.SigningKeys
}

var (
	_ server.Kind[*Policy] = (*Issuer)(nil)
	_ server.Deployed      = (*Issuer)(nil)
	_ server.Runner        = (*Issuer)(nil)
	_ server.Sealer        = (*Issuer)(nil)
)

// New returns an Issuer with a configuration.
func New(c Config) *Issuer {
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return &Issuer{c, keysIn(c.Store, c.Key)}
}

// keysIn returns the signing keys in a store. A key stays published for 15 minutes after it last
// signed, because tokens are valid for five minutes and clocks differ.
func keysIn(s store.Store, key *sealedstore.Key) sealedstore.SigningKeys {
	return sealedstore.SigningKeys{Store: s, Seal: key, At: keysAt, Algorithm: jose.ES256, Lingers: 15 * time.Minute}
}

// Name returns the name of the kind.
func (i *Issuer) Name() string { return Name }

// Policy contains the URL of the issuer, and the tokens that hosts may request. Compile decodes it
// from the policy of the provider host.
type Policy struct {
	issuer     *url.URL
	generation int // least generation of the signing keys
	requests   server.Requests[document.JWTRequest]
}

// Compile decodes the policy of a provider host. It returns an error if the issuer is not a valid
// URL, or if the policy permits a token of another issuer or a token that is not for a service of
// the trust domain.
func (i *Issuer) Compile(policy document.Policy) (*Policy, error) {
	var settings struct {
		Issuer     string `json:"issuer"`
		Generation int    `json:"generation"`
	}
	if err := server.Settings(policy, Name, &settings); err != nil {
		return nil, err
	}
	p := &Policy{generation: settings.Generation}
	var err error
	// Verifiers compare the issuer byte for byte (OpenID Connect Discovery 1.0 section 4.3).
	if p.issuer, err = announced.ParseIssuer(settings.Issuer); err != nil {
		return nil, fmt.Errorf("policy of %s: kind %q: %w", policy.Host, Name, err)
	}
	p.requests, err = server.DecodeGrants(policy, Name, func(g document.Grant) (document.JWTRequest, error) {
		r, err := document.Need{ID: g.Need, Request: g.Request}.JWT()
		switch {
		case err != nil:
		case r.Issuer != settings.Issuer:
			err = fmt.Errorf("issuer %q: this provider is %s", r.Issuer, settings.Issuer)
		case !r.ID.IsZero() && (r.ID.TrustDomain() != policy.TrustDomain || r.ID.Kind() != spiffe.KindService):
			err = fmt.Errorf("id %q: want a service of %s", r.ID, policy.TrustDomain)
		}
		return r, err
	})
	return p, err
}

// Answer issues a JWT-SVID for each audience in the request. For a request that names no service,
// the answer contains the public keys that verify JWT-SVIDs.
func (i *Issuer) Answer(ctx context.Context, p *Policy, c server.Call) (server.Decision, error) {
	r := p.requests.Of(c)
	ring, change, err := i.keys.Due(ctx, c.Now, p.generation)
	if err != nil {
		return server.Decision{}, err
	}
	d := server.Decision{If: change.If, Then: change.Then}
	if r.ID.IsZero() {
		d.Answer = hostapi.Answer{Values: map[string]string{"jwks": string(ring.JWKS())}, Expires: c.Now.Add(keysLive).Unix()}
		d.Repeated = c.Now.Add(repeated)
		return d, nil
	}
	if err := hostapi.RefuseIssue(c.Revoked.CheckIssued(r.ID, c.Caller.Name(), c.Now)); err != nil {
		return server.Decision{}, err
	}
	until := c.Now.Add(tokensLive)
	key := ring.Signer(c.Now)
	tokens := map[string]string{}
	for _, audience := range r.Audiences {
		if tokens[audience], err = sign(key, r, audience, c.Caller.Name(), c.Now, until); err != nil {
			return server.Decision{}, err
		}
	}
	b, err := json.Marshal(tokens)
	if err != nil {
		return server.Decision{}, err
	}
	audiences, err := json.Marshal(r.Audiences)
	d.Answer = hostapi.Answer{Values: map[string]string{"tokens": string(b)}, Expires: until.Unix()}
	d.Repeated = c.Now.Add(repeated)
	d.Detail = map[string]string{"id": r.ID.String(), "audiences": string(audiences), "key": key.ID, "until": until.Format(time.RFC3339)}
	return d, err
}

// sign makes the JWT-SVID of a SPIFFE ID for one audience.
func sign(k sealedstore.SigningKey, r document.JWTRequest, audience, node string, now, until time.Time) (string, error) {
	signer, err := k.Signer("JWT")
	if err != nil {
		return "", err
	}
	claims := jwt.Claims{
		Issuer: r.Issuer, Subject: r.ID.String(), Audience: jwt.Audience{audience},
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(until),
	}
	return jwt.Signed(signer).Claims(claims).Claims(map[string]any{document.ClaimNode: node}).Serialize()
}

// InForce describes the newest signing key. The server writes an audit row for each new key.
func (i *Issuer) InForce(ctx context.Context) (server.Version, error) {
	r, _, err := i.keys.Read(ctx)
	if err != nil || len(r) == 0 {
		return server.Version{}, err
	}
	k := r[len(r)-1]
	return server.Version{
		Name: "the key that signs JWT-SVIDs", Digest: k.ID,
		Detail: map[string]string{"generation": strconv.Itoa(k.Generation), "signs": k.Begins().UTC().Format(time.RFC3339)},
	}, nil
}

// Reseal encrypts the stored signing keys again, with the newest secret of the sealing key. Values
// that this secret has encrypted already are left unchanged.
func (i *Issuer) Reseal(ctx context.Context) error {
	return sealedstore.Walk(ctx, i.Store, keysAt, i.Key.Reseal)
}
