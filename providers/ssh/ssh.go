// Package ssh implements the kind of need for SSH user certificates, and for the public keys of the
// certificate authority that signs them:
//
//	POST /ssh/request {"id":"spiffe://demo.flor/user/alice","publicKey":"ssh-ed25519 AAAA…"}
//	→ certificate, a line of the form that ssh reads from id_ed25519-cert.pub
//	POST /ssh/request {}
//	→ ca, the public keys of the authority, one per line, as sshd reads TrustedUserCAKeys
//
// A certificate says who the user is. Its only principal is the SPIFFE ID of the user. The target
// host decides as which accounts this user may log in. The user's host makes the private key, which
// never leaves that host.
package ssh

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// Name is the name of the kind.
const Name = document.KindSSH

// keysAt is the store key under which the keys of the authority are sealed.
const keysAt = "ssh/keys"

const (
	minLifetime = 5 * time.Minute
	maxLifetime = 24 * time.Hour

	// announced is the time for which a key of the authority is published before it signs. It is
	// much longer than the few minutes within which a host fetches the keys, so that operators can
	// still log in to a host that has been cut off from the providers for days.
	announced = 7 * 24 * time.Hour

	// keyLife is the time for which a key signs before the next key is made. It then signs for as
	// long as the next key is announced, so a new key takes over every thirty days.
	keyLife = 23 * 24 * time.Hour

	// lingers is the time for which a key stays published after it last signed. It covers the
	// longest lifetime of certificates, because the policy may have had a longer lifetime when the
	// key signed, and clocks that differ.
	lingers = maxLifetime + 15*time.Minute

	// keysLive is the time for which an answer with the public keys is valid. Hosts fetch the keys
	// again after half of it. It is short, so that hosts soon have a key that replaces a stolen one.
	keysLive = 10 * time.Minute
)

// Repeated is the time for which a repeated request receives the same answer. It is much shorter than
// the time until a certificate is renewed, since the renewal asks for the same key.
const Repeated = 30 * time.Second

// Settings is the section of the settings file for the kind "ssh". There are no settings for this
// kind.
type Settings struct{}

// Kind returns the kind "ssh" for a provider process.
func (*Settings) Kind(p server.Process) server.AnyKind { return server.Any(New(p.Store, p.Key)) }

// Authority implements the kind "ssh". It is the SSH certificate authority for the users of the
// cluster.
type Authority struct {
	store store.Store
	seal  *sealedstore.Key
	keys  sealedstore.SigningKeys
}

var (
	_ server.Kind[*Policy] = (*Authority)(nil)
	_ server.Deployed      = (*Authority)(nil)
	_ server.Sealer        = (*Authority)(nil)
)

// New returns an Authority that keeps its keys in a state store, encrypted with the given key.
func New(s store.Store, seal *sealedstore.Key) *Authority {
	return &Authority{s, seal, sealedstore.SigningKeys{
		Store: s, Seal: seal, At: keysAt, Algorithm: jose.ES256, Lingers: lingers, Announced: announced, Life: keyLife,
	}}
}

// Name returns the name of the kind.
func (a *Authority) Name() string { return Name }

// Policy lists the SSH certificates that hosts may request, and their lifetime. Compile decodes it
// from the policy of the provider host.
type Policy struct {
	lifetime   time.Duration
	generation int // least generation of the authority's keys
	requests   server.Requests[document.SSHRequest]
}

// Compile decodes the policy of a provider host. It returns an error if the lifetime of
// certificates is out of range, or if a user belongs to another trust domain.
func (a *Authority) Compile(policy document.Policy) (*Policy, error) {
	var settings struct {
		Lifetime   int64 `json:"lifetime"` // in seconds
		Generation int   `json:"generation"`
	}
	if err := server.Settings(policy, Name, &settings); err != nil {
		return nil, err
	}
	if settings.Lifetime < int64(minLifetime/time.Second) || settings.Lifetime > int64(maxLifetime/time.Second) {
		return nil, fmt.Errorf("policy of %s: kind %q: lifetime %d, want %.0f to %.0f seconds", policy.Host, Name, settings.Lifetime, minLifetime.Seconds(), maxLifetime.Seconds())
	}
	p := &Policy{lifetime: time.Duration(settings.Lifetime) * time.Second, generation: settings.Generation}
	var err error
	p.requests, err = server.DecodeGrants(policy, Name, func(g document.Grant) (document.SSHRequest, error) {
		r, err := document.Need{ID: g.Need, Request: g.Request}.SSH()
		if err == nil && !r.ID.IsZero() && r.ID.TrustDomain() != policy.TrustDomain {
			err = fmt.Errorf("id %q: want a user of %s", r.ID, policy.TrustDomain)
		}
		return r, err
	})
	return p, err
}

// Answer issues the SSH certificate that a host requests for one of its users. If the user is
// revoked, it returns an error. For a request that names no user, the answer contains the public
// keys of the authority.
func (a *Authority) Answer(ctx context.Context, p *Policy, c server.Call) (server.Decision, error) {
	r := p.requests.Of(c)
	ring, change, err := a.keys.Due(ctx, c.Now, p.generation)
	if err != nil {
		return server.Decision{}, err
	}
	d := server.Decision{If: change.If, Then: change.Then, Repeated: c.Now.Add(Repeated)}
	if r.ID.IsZero() {
		d.Answer.Values, err = published(ring)
		d.Answer.Expires = c.Now.Add(keysLive).Unix()
		return d, err
	}
	key, err := requested(c.Request)
	if err != nil {
		return server.Decision{}, err
	}
	// Hosts read the time of issue from the certificate, which has whole seconds.
	now := c.Now.Truncate(time.Second)
	if err := hostapi.RefuseIssue(c.Revoked.CheckIssued(r.ID, c.Caller.Name(), now)); err != nil {
		return server.Decision{}, err
	}
	signer, err := open(ring.Signer(now))
	if err != nil {
		return server.Decision{}, err
	}
	until := now.Add(p.lifetime)
	certificate, err := Certify(signer, key, r.ID, c.Caller.Name(), now, until)
	if err != nil {
		return server.Decision{}, err
	}
	d.Answer = hostapi.Answer{
		Values:  map[string]string{"certificate": string(ssh.MarshalAuthorizedKey(certificate))},
		Expires: until.Unix(),
	}
	d.Detail = map[string]string{
		"id": r.ID.String(), "serial": strconv.FormatUint(certificate.Serial, 10),
		"key": ssh.FingerprintSHA256(certificate.SignatureKey), "until": until.UTC().Format(time.RFC3339),
	}
	return d, nil
}

// published returns the values of an answer with the public keys of the authority.
func published(ring sealedstore.SigningRing) (map[string]string, error) {
	var lines strings.Builder
	for _, k := range ring {
		signer, err := open(k)
		if err != nil {
			return nil, err
		}
		lines.Write(ssh.MarshalAuthorizedKey(signer.PublicKey()))
	}
	return map[string]string{"ca": lines.String()}, nil
}

// open returns a key of the authority in the form that signs certificates.
func open(k sealedstore.SigningKey) (ssh.Signer, error) {
	private, err := k.Open()
	if err != nil {
		return nil, err
	}
	return ssh.NewSignerFromSigner(private)
}

// InForce describes the newest key of the authority. The server writes an audit row for each new
// key.
func (a *Authority) InForce(ctx context.Context) (server.Version, error) {
	ring, _, err := a.keys.Read(ctx)
	if err != nil || len(ring) == 0 {
		return server.Version{}, err
	}
	k := ring[len(ring)-1]
	signer, err := open(k)
	if err != nil {
		return server.Version{}, err
	}
	return server.Version{
		Name: "the key that signs SSH certificates", Digest: ssh.FingerprintSHA256(signer.PublicKey()),
		Detail: map[string]string{"generation": strconv.Itoa(k.Generation), "signs": k.Begins().UTC().Format(time.RFC3339)},
	}, nil
}

// Reseal encrypts the stored keys of the authority again, with the newest secret of the sealing
// key. Values that this secret has encrypted already are left unchanged.
func (a *Authority) Reseal(ctx context.Context) error {
	return sealedstore.Walk(ctx, a.store, keysAt, a.seal.Reseal)
}
