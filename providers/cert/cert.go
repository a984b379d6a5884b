// Package cert implements the kind of need that issues X.509-SVIDs:
//
//	POST /cert/nonce                              → {"nonce":"…"}
//	POST /cert/request  {"id":"spiffe://…","csr":…}  → values "svid" and "bundle"
//	GET  /cert/crl?has=…                              → the CRL, for third-party software
//
// A node first requests its own SVID with a proof made by its SSH host key. With that SVID it
// renews it, and requests those of its services and users.
//
// A nonce is stateless: it consists of its time and 128 random bits, with an HMAC over those and
// the provider's ID. The transaction that issues a certificate records the nonce's hash for as long
// as the nonce is valid.
package cert

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// Name is the name of the kind.
const Name = "cert"

// Policy is the decoded part of a policy for this kind.
type Policy struct {
	document.Policy
	lifetime time.Duration // of an SVID
	roots    *trust.Roots
	bundle   string // of the roots, PEM
}

// minLifetime is the shortest lifetime that a policy can set; trust.MaxLifetime is the longest.
const minLifetime = 10 * time.Second

// Settings is the kind's section of the settings file.
type Settings struct {
	// IssuingCertificate is the file with the certificate that `florctl ca sign` made for this
	// process's issuing.csr.
	IssuingCertificate string `json:"issuingCertificate" path:"" default:"issuing.crt"`
}

// State describes the keys of the kind: the record of enrolled nodes is remembered, nonces are used
// once.
func (*Settings) State() server.State {
	return server.State{
		Remembered: []string{devicePrefix, linePrefix, issuedPrefix},
		Ending:     map[string]time.Duration{noncePrefix: usedLife},
	}
}

// Kind returns the Issuer for a process, whose directory holds the issuing key.
func (s *Settings) Kind(p server.Process) server.AnyKind { return server.Any(s.Issuer(p)) }

// Issuer returns the kind for a process. It also issues the SVID of that process.
func (s *Settings) Issuer(p server.Process) *Issuer {
	issuing := &ca.Kept{Certificate: s.IssuingCertificate, Key: IssuingKey(p.Dir)}
	return New(Config{
		Store: p.Store, Key: p.Key, Policy: server.Compiled[Policy](p.Policies), Revoked: p.Policies.Revoked,
		Authority: issuing.Load, CRL: filepath.Join(p.Dir, "crl.pem"),
	})
}

// Authority reads the issuing CA, whose key is in the process's directory dir.
func (s *Settings) Authority(dir string) (*ca.Authority, error) {
	return ca.Load(s.IssuingCertificate, IssuingKey(dir))
}

// IssuingKey returns the path of the issuing key in a process's directory.
func IssuingKey(dir string) string { return filepath.Join(dir, "issuing.key") }

// Config configures an Issuer. All fields but Revoked and CRL are required.
type Config struct {
	Store store.Store
	Key   *sealedstore.Key

	// Authority returns the issuing CA. It is called for each SVID, so that a new certificate is
	// used at once.
	Authority func() (*ca.Authority, error)

	// Policy returns the policy in force, or nil while that does not include this kind.
	Policy func() *Policy

	// Revoked returns the revocation list in force; nil for none. The field may be nil.
	Revoked func() *trust.Revocations

	// CRL is the file of the certificate revocation list that the issuer signs; empty for none.
	CRL string
}

func (c Config) revoked() *trust.Revocations {
	if c.Revoked == nil {
		return nil
	}
	return c.Revoked()
}

// Issuer is the kind "cert".
type Issuer struct {
	Config
	nonces  nonces
	used    used
	self    selfSVID
	trusted atomic.Pointer[trusted]
	crl     atomic.Pointer[crl]
}

var (
	_ server.Enroller = (*Issuer)(nil)
	_ server.Deployed = (*Issuer)(nil)
	_ server.Router   = (*Issuer)(nil)
	_ server.Runner   = (*Issuer)(nil)
)

// New returns an Issuer.
func New(c Config) *Issuer {
	return &Issuer{Config: c, nonces: nonces{c.Key.Derive("florete cert nonce v1", 32)}}
}

// Name returns the name of the kind.
func (i *Issuer) Name() string { return Name }

// Compile decodes a policy. It rejects lifetimes out of range, and roots to which the issuing
// certificate does not lead.
func (i *Issuer) Compile(policy document.Policy) (*Policy, error) {
	p, err := compile(policy)
	if err != nil {
		return nil, err
	}
	_, err = i.authority(p)
	return p, err
}

func compile(policy document.Policy) (*Policy, error) {
	var settings struct {
		Lifetime int64 `json:"lifetime"` // in seconds
	}
	if err := server.Settings(policy, Name, &settings); err != nil {
		return nil, err
	}
	p := &Policy{Policy: policy, lifetime: time.Duration(settings.Lifetime) * time.Second}
	if settings.Lifetime > int64(trust.MaxLifetime/time.Second) || p.lifetime < minLifetime {
		return nil, fmt.Errorf("policy of %s: kind %q: lifetime %d, want %.0f to %.0f seconds", policy.Host, Name, settings.Lifetime, minLifetime.Seconds(), trust.MaxLifetime.Seconds())
	}
	var err error
	if p.roots, err = trust.NewRoots(policy.TrustDomain, policy.Trust.Roots); err != nil {
		return nil, err
	}
	p.bundle = string(ca.EncodeCertificates(p.roots.Certificates()...))
	return p, nil
}

// authority returns the issuing CA if its certificate leads to a root of the policy.
func (i *Issuer) authority(p *Policy) (*ca.Authority, error) {
	a, err := i.Authority()
	if err != nil {
		return nil, fmt.Errorf("issuing CA: %w", err)
	}
	last, now := i.trusted.Load(), time.Now()
	if last != nil && last.authority == a && last.policy == p && now.Before(last.until) {
		return a, nil
	}
	if err := p.trusts(a); err != nil {
		return nil, err
	}
	i.trusted.Store(&trusted{a, p, now.Add(time.Second)})
	return a, nil
}

// trusted is an issuing CA that was found to lead to a root of a policy. The result is reused for a
// short time only, because certificates expire.
type trusted struct {
	authority *ca.Authority
	policy    *Policy
	until     time.Time
}

// Trusted returns an error if hosts would reject SVIDs of an issuing CA, because its certificate
// leads to no root of the policy or is not constrained to the policy's trust domain.
func Trusted(a *ca.Authority, policy document.Policy) error {
	p, err := compile(policy)
	if err != nil {
		return err
	}
	return p.trusts(a)
}

func (p *Policy) trusts(a *ca.Authority) error {
	if err := p.roots.CheckIssuing(a.Certificate, time.Now()); err != nil {
		return fmt.Errorf("%w: sign it with a root that the policy of %s trusts", err, p.Host)
	}
	return nil
}

// issue returns the chain of a new SVID, valid for the lifetime of the policy: the leaf, then the
// issuing certificate.
func (i *Issuer) issue(p *Policy, s ca.SVID, now time.Time) ([]*x509.Certificate, error) {
	a, err := i.authority(p)
	if err != nil {
		return nil, err
	}
	s.Until = now.Add(p.lifetime)
	leaf, err := a.Issue(s, now)
	if err != nil {
		return nil, err
	}
	return []*x509.Certificate{leaf, a.Certificate}, nil
}

// Answer issues an SVID that the policy grants.
func (i *Issuer) Answer(ctx context.Context, p *Policy, c server.Call) (server.Decision, error) {
	body, err := decode(c.Request)
	if err != nil {
		return server.Decision{}, err
	}
	key, err := ca.ParseCSR([]byte(body.CSR), body.ID)
	if err != nil {
		return server.Decision{}, malformed(c.Request, err)
	}
	chain, err := i.issue(p, ca.SVID{ID: body.ID, Node: c.Caller.Name(), Device: c.Device, Key: key}, c.Now)
	if err != nil {
		return server.Decision{}, err
	}
	if err := refuseRevoked(c.Revoked, chain, body.ID); err != nil {
		return server.Decision{}, err
	}
	var d server.Decision
	if body.ID == c.Caller {
		if d, err = i.extendLine(ctx, c, chain[0], chain[1]); err != nil {
			return d, err
		}
	}
	d.Then = append(d.Then, keepIssued(chain[0], body.ID))
	d.Answer = hostapi.Answer{
		Values: map[string]string{
			"svid":   string(ca.EncodeCertificates(chain...)),
			"bundle": p.bundle,
		},
		Expires: chain[0].NotAfter.Unix(),
	}
	d.Detail = issuedDetail(chain[0], body.ID)
	return d, nil
}

// refuseRevoked refuses to issue a certificate that hosts would refuse.
func refuseRevoked(list *trust.Revocations, chain []*x509.Certificate, id spiffe.ID) error {
	err := list.CheckChain(chain, id)
	var revoked *trust.RevokedError
	switch {
	case !errors.As(err, &revoked):
		return err
	case !revoked.ValidAfter.IsZero() && !revoked.Suspended:
		return hostapi.Errorf(hostapi.CodeRevokedTransient, "%v, which is later than it is here: set the clock, if that is wrong", err).After(time.Second)
	}
	return hostapi.Revoked("", revoked)
}

// InForce returns the issuing certificate in force.
func (i *Issuer) InForce(context.Context) (server.Version, error) {
	a, err := i.Authority()
	if err != nil { // which requests report
		return server.Version{}, nil
	}
	return server.Version{
		Name: "the issuing certificate", Digest: trust.SerialNumber(a.Certificate),
		Detail: map[string]string{"issuer": a.Certificate.Issuer.CommonName, "until": a.Certificate.NotAfter.Format(time.RFC3339)},
	}, nil
}

// decode decodes the body of a request.
func decode(r hostapi.Request) (body hostapi.CertBody, err error) {
	if err := strictjson.Decode(r.Body, &body); err != nil {
		return body, malformed(r, fmt.Errorf("body: %w", err))
	}
	return body, nil
}

func malformed(r hostapi.Request, err error) error {
	return hostapi.Errorf(hostapi.CodeMalformed, "need %q: %v", r.Need, err)
}
