package trust

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/florete/florete/internal/pubkey"
	"github.com/florete/florete/internal/spiffe"
)

// Roots verifies X.509-SVIDs of one trust domain and of its federated trust domains. It refuses
// revoked SVIDs. A Roots is immutable.
type Roots struct {
	domain       string
	certificates []*x509.Certificate
	pool         *x509.CertPool
	revoked      *Revocations
	foreign      bool              // belongs to a Bundle
	federated    map[string]*Roots // by trust domain
	verified     *Verified         // cache of verified chains, nil for none
}

// Federated returns a copy that also verifies X.509-SVIDs of other trust domains, for which the
// bundles are given. Each bundle verifies only SVIDs of its own trust domain.
func (r *Roots) Federated(with []*Bundle) (*Roots, error) {
	c := *r
	c.federated = map[string]*Roots{}
	for _, b := range with {
		if b.TrustDomain() == r.domain {
			return nil, fmt.Errorf("bundle of %s: that is this trust domain, whose roots the manifest has", r.domain)
		}
		c.federated[b.TrustDomain()] = b.roots
	}
	return &c, nil
}

// of returns the Roots that verifies the identity id, by its trust domain.
func (r *Roots) of(id spiffe.ID) *Roots {
	if f := r.federated[id.TrustDomain()]; f != nil && id.TrustDomain() != r.domain {
		return f
	}
	return r
}

// With returns a copy with another revocation list. If the list is nil, the copy revokes nothing.
func (r *Roots) With(list *Revocations) *Roots {
	if r.revoked == list {
		return r
	}
	c := *r
	c.revoked = list
	return &c
}

// Revocations returns the revocation list that r uses, or nil if it uses none.
func (r *Roots) Revocations() *Revocations { return r.revoked }

// NewRoots parses the root certificates of a trust domain. Each text contains one or more
// certificates in PEM.
func NewRoots(trustDomain string, texts []string) (*Roots, error) {
	td, err := spiffeid.TrustDomainFromString(trustDomain)
	if err != nil || td.Name() != trustDomain {
		return nil, fmt.Errorf("trust domain %q: not a SPIFFE trust domain", trustDomain)
	}
	r := &Roots{domain: trustDomain, pool: x509.NewCertPool()}
	for i, text := range texts {
		certificates, err := ParseCertificates([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("trust root %d: %w", i, err)
		}
		for _, c := range certificates {
			if err := pubkey.Check(c.PublicKey); err != nil {
				return nil, fmt.Errorf("trust root %d: %w", i, err)
			}
			r.certificates = append(r.certificates, c)
			r.pool.AddCert(c)
		}
	}
	if len(r.certificates) == 0 {
		return nil, fmt.Errorf("trust domain %s: no trust roots", trustDomain)
	}
	return r, nil
}

// ParseCertificates parses the certificates in a PEM text, and ignores text between the PEM blocks.
// It returns an error if there is no certificate.
func ParseCertificates(text []byte) (all []*x509.Certificate, err error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return all, fmt.Errorf("a PEM block %q, want CERTIFICATE", block.Type)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return all, err
		}
		all = append(all, c)
	}
	if all == nil {
		err = errors.New("no PEM block CERTIFICATE in it")
	}
	return all, err
}

// TrustDomain returns the trust domain to which the root certificates belong.
func (r *Roots) TrustDomain() string { return r.domain }

// Certificates returns the root certificates, in the order in which they were parsed.
func (r *Roots) Certificates() []*x509.Certificate { return slices.Clone(r.certificates) }

// Fingerprint returns the SHA-256 of a certificate in DER form, in lower-case hex.
func Fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}

// Fingerprints returns the fingerprints of the root certificates, sorted.
func (r *Roots) Fingerprints() []string {
	all := make([]string, 0, len(r.certificates))
	for _, c := range r.certificates {
		all = append(all, Fingerprint(c))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Anchor returns the fingerprint of the root certificate that has signed the last certificate of a
// chain, or AnchorUnknown if r does not contain that root. It does not verify the rest of the
// chain.
func (r *Roots) Anchor(chain []*x509.Certificate) string {
	if c := r.root(chain); c != nil {
		return Fingerprint(c)
	}
	return AnchorUnknown
}

// root returns the root certificate that signed the last certificate of a chain. It returns nil if
// r does not contain this root.
func (r *Roots) root(chain []*x509.Certificate) *x509.Certificate {
	last := chain[len(chain)-1]
	for _, c := range r.certificates {
		if last.CheckSignatureFrom(c) == nil {
			return c
		}
	}
	return nil
}

// Superseded reports whether a chain leads to a root certificate that is being replaced, because
// there is another root whose validity begins later.
func (r *Roots) Superseded(chain []*x509.Certificate) bool {
	if len(r.certificates) < 2 {
		return false
	}
	is := r.root(chain)
	return is != nil && slices.ContainsFunc(r.certificates, func(c *x509.Certificate) bool { return c.NotBefore.After(is.NotBefore) })
}

// Precedes reports whether chain leads to an older root certificate than other does. It returns
// false if either chain leads to no root of r.
func (r *Roots) Precedes(chain, other []*x509.Certificate) bool {
	if len(r.certificates) < 2 {
		return false
	}
	a, b := r.root(chain), r.root(other)
	return a != nil && b != nil && a.NotBefore.Before(b.NotBefore)
}

// Equal reports whether both trust the same root certificates. It does not compare their revocation
// lists.
func (r *Roots) Equal(o *Roots) bool {
	return r == o || r.domain == o.domain && slices.EqualFunc(r.certificates, o.certificates, (*x509.Certificate).Equal) &&
		maps.EqualFunc(r.federated, o.federated, (*Roots).Equal)
}

// CheckIssuing returns an error if programs that trust these roots would refuse an issuing
// certificate at the given time.
func (r *Roots) CheckIssuing(c *x509.Certificate, at time.Time) error {
	if err := r.checkIssuer(c); err != nil {
		return err
	}
	_, err := c.Verify(x509.VerifyOptions{Roots: r.pool, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	if err != nil {
		return fmt.Errorf("issuing certificate: %w", err)
	}
	return nil
}

// checkIssuer checks that a CA certificate can issue only identities of this trust domain. The
// certificate needs a critical constraint of URI names (RFC 5280, section 4.2.1.10) that permits
// nothing else. CAs of foreign trust domains need no constraint, because their roots verify only
// identities of their own domain.
func (r *Roots) checkIssuer(c *x509.Certificate) error {
	switch {
	case !c.BasicConstraintsValid || !c.IsCA:
		return fmt.Errorf("issuing certificate %q: not the certificate of a CA", c.Subject.CommonName)
	case r.foreign:
	case len(c.PermittedURIDomains) == 0:
		return fmt.Errorf("issuing certificate %q: no name constraint, want one for %s", c.Subject.CommonName, r.domain)
	case !slices.Equal(c.PermittedURIDomains, []string{r.domain}) || !c.PermittedDNSDomainsCritical:
		return fmt.Errorf("issuing certificate %q: its name constraint is for %s, want a critical one for %s",
			c.Subject.CommonName, strings.Join(c.PermittedURIDomains, " "), r.domain)
	}
	return pubkey.Check(c.PublicKey)
}

// AnchorUnknown is the result of Anchor for a chain that leads to a root that is not trusted.
const AnchorUnknown = "unknown"
