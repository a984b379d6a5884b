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
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// Name is the name of the kind.
const Name = "cert"

// Policy contains the rules for issuing SVIDs in a cluster, such as the roots and the lifetime of
// an SVID. Compile decodes it from the policy of the provider host.
type Policy struct {
	document.Policy
	lifetime time.Duration // lifetime of an SVID
	roots    *trust.Roots
	bundle   string // roots in PEM
}

// minLifetime is the shortest lifetime of SVIDs that a policy can set. The longest lifetime is
// trust.MaxLifetime.
const minLifetime = 10 * time.Second

// Settings is the kind's section of the settings file.
type Settings struct {
	// IssuingCertificate is the file with the issuing CA's certificate. An operator makes it from
	// the process's issuing.csr with `florctl ca sign`.
	IssuingCertificate string `json:"issuingCertificate" path:"" default:"issuing.crt"`
}

// State returns the keys in the state store that belong in a backup: the records of enrolled nodes
// and of issued certificates. Used nonces are left out.
func (*Settings) State() server.State {
	return server.State{
		Remembered: []string{devicePrefix, linePrefix, issuedPrefix},
		Ending:     map[string]time.Duration{noncePrefix: usedLife},
	}
}

// Kind returns an Issuer, as the work of a server process. The issuing key is in the directory of
// the process.
func (s *Settings) Kind(p server.Process) server.AnyKind { return server.Any(s.Issuer(p)) }

// Issuer returns the Issuer for a server process. The Issuer also issues the process's own SVID.
func (s *Settings) Issuer(p server.Process) *Issuer {
	issuing := &ca.Kept{Certificate: s.IssuingCertificate, Key: IssuingKey(p.Dir)}
	return New(Config{
		Store: p.Store, Key: p.Key, Policy: server.Compiled[Policy](p.Policies), Revoked: p.Policies.Revoked,
		Authority: issuing.Load, CRL: filepath.Join(p.Dir, "crl.pem"),
	})
}

// Authority reads the issuing CA of the provider. Its key is in dir, the directory of the provider
// process.
func (s *Settings) Authority(dir string) (*ca.Authority, error) {
	return ca.Load(s.IssuingCertificate, IssuingKey(dir))
}

// IssuingKey returns the path of the issuing CA's key, given the directory of the provider process.
func IssuingKey(dir string) string { return filepath.Join(dir, "issuing.key") }

// Config configures an Issuer. All fields except Revoked and CRL are required.
type Config struct {
	Store store.Store
	Key   *sealedstore.Key

	// Authority returns the issuing CA. It is called for each SVID, so that a new issuing
	// certificate is used at once.
	Authority func() (*ca.Authority, error)

	// Policy returns the policy in force, or nil while the policy does not include this kind.
	Policy func() *Policy

	// Revoked returns the revocation list in force, or nil if there is none. The field may be nil.
	Revoked func() *trust.Revocations

	// CRL is the file for the certificate revocation list that the Issuer signs. If it is empty, no
	// list is signed.
	CRL string
}

func (c Config) revoked() *trust.Revocations {
	if c.Revoked == nil {
		return nil
	}
	return c.Revoked()
}

// Issuer implements the kind "cert". It enrols nodes, which means that it verifies their first
// requests, and issues X.509-SVIDs to them.
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

// New returns an Issuer with a configuration.
func New(c Config) *Issuer {
	return &Issuer{Config: c, nonces: nonces{c.Key.Derive("florete cert nonce v1", 32)}}
}

// Name returns the name of the kind.
func (i *Issuer) Name() string { return Name }

// Compile decodes the policy of a provider host. It returns an error if the lifetime of SVIDs is
// out of range, or if hosts would reject SVIDs that the issuing certificate signs.
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

// authority returns the issuing CA. It returns an error if no root of the policy verifies the CA's
// certificate.
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

// trusted is an issuing CA whose certificate was verified by a root of the policy. The verification
// is repeated after a short time, because certificates expire.
type trusted struct {
	authority *ca.Authority
	policy    *Policy
	until     time.Time
}

// Trusted returns an error if hosts would reject all SVIDs of an issuing CA. They do so if no root
// in the policy has signed the CA's certificate, or if that certificate is not limited to the trust
// domain of the policy.
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

// issue issues an SVID with the lifetime in the policy. It returns the certificate chain: the SVID,
// then the issuing certificate.
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

// Answer issues an SVID for the public key in the request's CSR. The answer contains the
// certificate chain and the roots in PEM, and expires with the SVID. For a revoked identity, Answer
// returns an error.
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
	if err := hostapi.RefuseIssue(c.Revoked.CheckChain(chain, body.ID)); err != nil {
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

// InForce describes the issuing certificate that the provider uses now. The server writes an audit
// row when that certificate changes.
func (i *Issuer) InForce(context.Context) (server.Version, error) {
	a, err := i.Authority()
	if err != nil { // the answers to requests contain the error
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
