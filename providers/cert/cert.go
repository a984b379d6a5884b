// Package cert is the kind of need that issues X.509-SVIDs:
//
//	POST /cert/nonce                              → {"nonce":"…"}
//	POST /cert/svid  {"id":"spiffe://…","csr":…}  → values "svid" and "bundle"
//
// A node first asks for its own SVID with a proof made by its SSH host key, and
// then for that and for those of its services and users with the SVID.
//
// A nonce is stateless: its time and 128 random bits, with an HMAC over those and
// the provider's ID. Using it leaves its hash in the state for as long as it is
// valid, in the transaction that issues.
package cert

import (
	"context"
	"crypto"
	"crypto/x509"
	"fmt"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/api"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/providers/seal"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// Name of the kind.
const Name = "cert"

// settings of the kind in a policy.
type settings struct {
	Lifetime int64 `json:"lifetime"` // of an SVID, in seconds
}

// The lifetimes that a policy can set.
const (
	minLifetime = 10 * time.Second
	maxLifetime = 90 * 24 * time.Hour
)

// Config of an Issuer. Every field is needed.
type Config struct {
	Store store.Store
	Key   *seal.Key

	// Authority is the issuing CA. It is read for each SVID, so that a new
	// certificate of it is used at once.
	Authority func() (*ca.Authority, error)

	// Policy is the one in force.
	Policy func() florete.Policy
}

// Issuer is the kind "cert".
type Issuer struct {
	Config
	nonces nonces
	own    own
}

var (
	_ server.Enroller = (*Issuer)(nil)
	_ server.Deployed = (*Issuer)(nil)
)

// New makes an Issuer.
func New(c Config) *Issuer {
	return &Issuer{Config: c, nonces: nonces{c.Key.Derive("florete cert nonce v1", 32)}}
}

// Name of the kind.
func (i *Issuer) Name() string { return Name }

// Check refuses lifetimes out of range and roots that the issuing certificate does not
// lead to.
func (i *Issuer) Check(p florete.Policy) error {
	if _, err := lifetime(p); err != nil {
		return err
	}
	_, err := i.authority(p)
	return err
}

func lifetime(p florete.Policy) (time.Duration, error) {
	var s settings
	if err := server.Settings(p, Name, &s); err != nil {
		return 0, err
	}
	d := time.Duration(s.Lifetime) * time.Second
	if s.Lifetime > int64(maxLifetime/time.Second) || d < minLifetime {
		return 0, fmt.Errorf("policy of %s: kind %q: lifetime %d, want %.0f to %.0f seconds", p.Host, Name, s.Lifetime, minLifetime.Seconds(), maxLifetime.Seconds())
	}
	return d, nil
}

// authority is the issuing CA, if its certificate leads to a root of the policy.
func (i *Issuer) authority(p florete.Policy) (*ca.Authority, error) {
	a, err := i.Authority()
	if err != nil {
		return nil, fmt.Errorf("issuing CA: %w", err)
	}
	return a, Trusted(a, p)
}

// Trusted refuses an issuing CA whose SVIDs hosts would refuse: its certificate leads to no
// root of a policy, or is not constrained to its trust domain.
func Trusted(a *ca.Authority, p florete.Policy) error {
	roots, err := florete.NewRoots(p.TrustDomain, p.Trust.Roots)
	if err != nil {
		return err
	}
	if err := roots.CheckIssuing(a.Certificate, time.Now()); err != nil {
		return fmt.Errorf("%w: sign it with a root that the policy of %s trusts", err, p.Host)
	}
	return nil
}

// issue makes the chain of an SVID: the leaf, then the issuing certificate.
func (i *Issuer) issue(p florete.Policy, id florete.ID, key crypto.PublicKey, now time.Time) ([]*x509.Certificate, error) {
	d, err := lifetime(p)
	if err != nil {
		return nil, err
	}
	a, err := i.authority(p)
	if err != nil {
		return nil, err
	}
	leaf, err := a.Issue(id, key, now.Add(d), now)
	if err != nil {
		return nil, err
	}
	return []*x509.Certificate{leaf, a.Certificate}, nil
}

// Answer issues an SVID that the policy grants.
func (i *Issuer) Answer(ctx context.Context, c server.Call) (server.Decision, error) {
	body, key, _, err := parse(c.Request)
	if err != nil {
		return server.Decision{}, err
	}
	chain, err := i.issue(c.Policy, body.ID, key, c.Now)
	if err != nil {
		return server.Decision{}, err
	}
	roots, err := florete.NewRoots(c.Policy.TrustDomain, c.Policy.Trust.Roots)
	if err != nil {
		return server.Decision{}, err
	}
	var d server.Decision
	if body.ID == c.Caller {
		if d, err = i.extendLine(ctx, c, chain[0], chain[1]); err != nil {
			return d, err
		}
	}
	d.Answer = api.Answer{
		Values: map[string]string{
			"svid":   string(ca.EncodeCertificates(chain...)),
			"bundle": string(ca.EncodeCertificates(roots.Certificates()...)),
		},
		Expires: chain[0].NotAfter.Unix(),
	}
	d.Detail = map[string]string{
		"id":          body.ID.String(),
		"certificate": number(chain[0]),
		"until":       chain[0].NotAfter.Format(time.RFC3339),
	}
	return d, nil
}

// InForce is the issuing certificate.
func (i *Issuer) InForce(florete.Policy) server.Version {
	a, err := i.Authority()
	if err != nil { // which requests report
		return server.Version{}
	}
	return server.Version{
		Name: "the issuing certificate", Digest: number(a.Certificate),
		Detail: map[string]string{"issuer": a.Certificate.Issuer.CommonName, "until": a.Certificate.NotAfter.Format(time.RFC3339)},
	}
}

// parse reads the body of a request: what it asks for, the key and the CSR's DER.
func parse(r api.Request) (api.CertBody, crypto.PublicKey, []byte, error) {
	var body api.CertBody
	if err := florete.Decode(r.Body, &body); err != nil {
		return body, nil, nil, api.Errorf(api.Invalid, api.CodeMalformed, "need %q: body: %v", r.Need, err)
	}
	key, der, err := ca.ParseCSR([]byte(body.CSR), body.ID)
	if err != nil {
		return body, nil, nil, api.Errorf(api.Invalid, api.CodeMalformed, "need %q: %v", r.Need, err)
	}
	return body, key, der, nil
}
