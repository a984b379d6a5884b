package trust

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/spiffebundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/florete/florete/internal/pubkey"
)

// MaxBundle bounds a bundle in bytes: stores keep it whole.
const MaxBundle = 128 << 10

// Bundle is what verifies the identities of one trust domain, in the form that the SPIFFE Trust
// Domain and Bundle specification has. It does not change.
type Bundle struct {
	parsed *spiffebundle.Bundle
	roots  *Roots
}

// ParseBundle reads the bundle of a trust domain. It refuses one without certificates for
// X.509-SVIDs, with one that is no CA's or that names another trust domain, and with keys that
// are refused.
func ParseBundle(trustDomain string, text []byte) (*Bundle, error) {
	td, err := spiffeid.TrustDomainFromString(trustDomain)
	if err != nil || td.Name() != trustDomain {
		return nil, fmt.Errorf("trust domain %q: not a SPIFFE trust domain", trustDomain)
	}
	if len(text) > MaxBundle {
		return nil, fmt.Errorf("bundle of %s: %d bytes, want at most %d", trustDomain, len(text), MaxBundle)
	}
	parsed, err := spiffebundle.Parse(td, text)
	if err != nil {
		return nil, fmt.Errorf("bundle of %s: %w", trustDomain, err)
	}
	// In one order, so that equal bundles are written alike.
	parsed.SetX509Authorities(slices.SortedFunc(slices.Values(parsed.X509Authorities()), func(a, b *x509.Certificate) int { return bytes.Compare(a.Raw, b.Raw) }))
	b := &Bundle{parsed, &Roots{domain: trustDomain, foreign: true, pool: x509.NewCertPool()}}
	for i, c := range parsed.X509Authorities() {
		if err := checkForeignRoot(c, trustDomain); err != nil {
			return nil, fmt.Errorf("bundle of %s: certificate %d: %w", trustDomain, i, err)
		}
		b.roots.certificates = append(b.roots.certificates, c)
		b.roots.pool.AddCert(c)
	}
	if len(b.roots.certificates) == 0 {
		return nil, fmt.Errorf("bundle of %s: no certificate of use x509-svid in it", trustDomain)
	}
	return b, nil
}

func checkForeignRoot(c *x509.Certificate, trustDomain string) error {
	if !c.BasicConstraintsValid || !c.IsCA {
		return fmt.Errorf("%q: not the certificate of a CA", c.Subject.CommonName)
	}
	for _, u := range c.URIs {
		if u.Scheme == "spiffe" && u.Host != trustDomain {
			return fmt.Errorf("%q: of trust domain %s", c.Subject.CommonName, u.Host)
		}
	}
	return pubkey.Check(c.PublicKey)
}

// TrustDomain is whose bundle it is.
func (b *Bundle) TrustDomain() string { return b.roots.domain }

// Roots verify its X.509-SVIDs, and no others.
func (b *Bundle) Roots() *Roots { return b.roots }

// SPIFFE is the bundle in go-spiffe's form, a copy.
func (b *Bundle) SPIFFE() *spiffebundle.Bundle { return b.parsed.Clone() }

// Marshal is its one form, with the keys in order: what else the text had that it was read from
// is not in it.
func (b *Bundle) Marshal() ([]byte, error) {
	text, err := b.parsed.Marshal()
	if err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	var keys []json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(all["keys"], &keys); err != nil {
		return nil, err
	}
	slices.SortStableFunc(keys, func(a, b json.RawMessage) int { return bytes.Compare(a, b) })
	if all["keys"], err = json.Marshal(keys); err != nil {
		return nil, err
	}
	return json.Marshal(all)
}

// Sequence numbers the bundles of a trust domain; zero where they have no numbers.
func (b *Bundle) Sequence() uint64 {
	n, _ := b.parsed.SequenceNumber()
	return n
}

// RefreshHint is how soon the next one may be there; zero where it has no hint.
func (b *Bundle) RefreshHint() time.Duration {
	d, _ := b.parsed.RefreshHint()
	return d
}

// Equal reports whether both mean the same.
func (b *Bundle) Equal(o *Bundle) bool { return b.parsed.Equal(o.parsed) }

// CheckAfter refuses a bundle that cannot come after old: of a lower sequence number, or of the
// same one with other contents.
func (b *Bundle) CheckAfter(old *Bundle) error {
	switch n, last := b.Sequence(), old.Sequence(); {
	case n < last:
		return &BundleRollbackError{b.TrustDomain(), n, last}
	case n == last && n != 0 && !b.vouchesAs(old):
		return fmt.Errorf("bundle of %s: sequence number %d with other keys than the one before of that number, want a higher number", b.TrustDomain(), n)
	}
	return nil
}

// vouchesAs reports whether both verify the same.
func (b *Bundle) vouchesAs(o *Bundle) bool {
	mine, others := b.parsed.Clone(), o.parsed.Clone()
	mine.ClearRefreshHint()
	others.ClearRefreshHint()
	return mine.Equal(others)
}

// BundleRollbackError is that of a bundle that is older than the one in force.
type BundleRollbackError struct {
	TrustDomain     string
	Number, InForce uint64
}

func (e *BundleRollbackError) Error() string {
	return fmt.Sprintf("bundle of %s: sequence number %d, want one after %d, which is in force", e.TrustDomain, e.Number, e.InForce)
}
