// Package ca makes the certificates of a trust domain, X.509-SVIDs as SPIFFE
// profiles them (spiffe.io/docs, X509-SVID):
//
//	root      spiffe://<trust-domain>, CA, path length 1; key kept offline
//	issuing   spiffe://<trust-domain>, CA, path length 0; key made at the provider
//	both      a critical name constraint: URIs of the trust domain alone (RFC 5280 section 4.2.1.10)
//	leaf      exactly one URI SAN, digital signature, server and client, no CA
package ca

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net/netip"
	"net/url"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
)

// These are the lifetimes of the certificates that an operator signs.
const (
	RootLifetime    = 10 * 365 * 24 * time.Hour
	IssuingLifetime = 365 * 24 * time.Hour
)

// An Authority is a certificate authority: a CA certificate and its private key.
type Authority struct {
	Certificate *x509.Certificate
	Key         crypto.Signer
}

// NewKey generates a private key of the type that all CAs and providers use: ECDSA on the curve
// P-256.
func NewKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

// NewRoot makes the root certificate of a trust domain and its key.
func NewRoot(trustDomain string, now time.Time) (*Authority, error) {
	return RootOf(trustDomain, func() (crypto.Signer, error) { return NewKey() }, now)
}

// RootOf creates the self-signed root certificate of a trust domain, which is valid for
// RootLifetime from now. It calls newKey for the private key of the root. The function may generate
// the key, or return an existing one, for example from a hardware token.
func RootOf(trustDomain string, newKey func() (crypto.Signer, error), now time.Time) (*Authority, error) {
	name, err := domain(trustDomain)
	if err != nil {
		return nil, err
	}
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	t := authority(name, "root", now.Add(RootLifetime))
	t.MaxPathLen = 1
	root, err := create(t, t, key.Public(), key, now)
	return &Authority{Certificate: root, Key: key}, err
}

// TrustDomain returns the name of the authority's trust domain, such as "demo.flor.rete". The
// authority must not come from LoadStore. Such an authority has no trust domain, and TrustDomain
// panics.
func (a *Authority) TrustDomain() string { return a.Certificate.URIs[0].Host }

// SignIssuing signs a certificate request, in PEM, for an issuing CA, which issues the certificates
// of hosts in place of the root. The request must be for the root's trust domain. The certificate
// is valid for the given lifetime, but not longer than the root.
func (a *Authority) SignIssuing(csr []byte, lifetime time.Duration, now time.Time) (*x509.Certificate, error) {
	r, err := parseCSR(csr)
	if err != nil {
		return nil, err
	}
	name, err := domain(a.TrustDomain())
	if err != nil {
		return nil, err
	}
	if len(r.URIs) != 1 || r.URIs[0].String() != name.String() {
		return nil, fmt.Errorf("certificate request: for %v, this root is of %s: sign it with that trust domain's root", r.URIs, name)
	}
	t := authority(name, "issuing", now.Add(lifetime))
	t.MaxPathLenZero = true
	return create(t, a.Certificate, r.PublicKey, a.Key, now)
}

// SVID describes an X.509-SVID that is to be issued.
type SVID struct {
	ID     spiffe.ID
	Node   string // node that receives the SVID; empty for none
	Device string // fingerprint of the device key of a node that joined; empty for others
	Key    crypto.PublicKey
	Until  time.Time
}

// Issue signs the certificate of an SVID. The certificate is valid until s.Until, but not longer
// than the authority's own. Issue returns an error if the SPIFFE ID is in another trust domain.
func (a *Authority) Issue(s SVID, now time.Time) (*x509.Certificate, error) {
	id := s.ID
	if id.TrustDomain() != a.TrustDomain() {
		return nil, fmt.Errorf("%s: not of %s, the trust domain of the issuing certificate", id, a.TrustDomain())
	}
	u, err := url.Parse(id.String())
	if err != nil {
		return nil, err
	}
	return create(&x509.Certificate{
		URIs:                  []*url.URL{u},
		Subject:               pkix.Name{OrganizationalUnit: trust.Subject(s.Node, s.Device)},
		NotAfter:              s.Until,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}, a.Certificate, s.Key, a.Key, now)
}

// authority returns the certificate template that root CAs and issuing CAs share.
func authority(trustDomain *url.URL, what string, until time.Time) *x509.Certificate {
	return &x509.Certificate{
		Subject:               pkix.Name{CommonName: trustDomain.Host + " " + what},
		URIs:                  []*url.URL{trustDomain},
		NotAfter:              until,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,

		PermittedURIDomains:         []string{trustDomain.Host},
		PermittedDNSDomainsCritical: true, // the extension is
	}
}

// create signs a certificate whose validity lies within that of its parent. Package x509 chooses a
// random serial number.
func create(t, parent *x509.Certificate, pub crypto.PublicKey, key crypto.Signer, now time.Time) (*x509.Certificate, error) {
	t.NotBefore = now.Add(-trust.Backdated)
	if t != parent {
		if now.After(parent.NotAfter) {
			return nil, fmt.Errorf("the certificate of %q ended %s: it signs nothing any more, renew it", parent.Subject.CommonName, parent.NotAfter.Format(time.RFC3339))
		}
		if t.NotAfter.After(parent.NotAfter) {
			t.NotAfter = parent.NotAfter
		}
		if t.NotBefore.Before(parent.NotBefore) {
			t.NotBefore = parent.NotBefore
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, parent, pub, key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func domain(trustDomain string) (*url.URL, error) {
	td, err := spiffeid.TrustDomainFromString(trustDomain)
	if err != nil || td.Name() != trustDomain {
		return nil, fmt.Errorf("trust domain %q: want a name such as \"demo.flor\"", trustDomain)
	}
	if _, err := netip.ParseAddr(trustDomain); err == nil {
		return nil, fmt.Errorf("trust domain %q: an IP address, which name constraints cannot hold: want a name such as \"demo.flor\"", trustDomain)
	}
	return url.Parse(td.IDString())
}
