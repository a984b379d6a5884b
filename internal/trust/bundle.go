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

// MaxBundle is the maximum size of a trust bundle in bytes. State stores need a limit, because they
// keep a bundle as a single value.
const MaxBundle = 128 << 10

// Bundle contains the public keys that verify the identities of one trust domain, in the format of
// the SPIFFE Trust Domain and Bundle specification. A Bundle is immutable.
type Bundle struct {
	parsed *spiffebundle.Bundle
	roots  *Roots
}

// ParseBundle parses the bundle of a trust domain. It returns an error if
//
//   - the bundle has no certificate for X.509-SVIDs,
//   - a certificate is not a CA certificate, or names another trust domain, or
//   - a certificate has a key that pubkey.Check refuses.
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
	// A fixed order, so that equal bundles are written alike.
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

// TrustDomain returns the trust domain whose identities the bundle verifies.
func (b *Bundle) TrustDomain() string { return b.roots.domain }

// Roots returns the root certificates of the bundle, which verify only X.509-SVIDs of its trust
// domain.
func (b *Bundle) Roots() *Roots { return b.roots }

// SPIFFE returns a copy of the bundle as a Bundle of the library go-spiffe.
func (b *Bundle) SPIFFE() *spiffebundle.Bundle { return b.parsed.Clone() }

// Marshal encodes the bundle as canonical JSON with sorted keys. Unknown fields of the text from
// which the bundle was parsed are lost.
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

// Sequence returns the sequence number of the bundle, or zero if it has none.
func (b *Bundle) Sequence() uint64 {
	n, _ := b.parsed.SequenceNumber()
	return n
}

// RefreshHint returns how long hosts should wait before they look for a newer bundle, or zero if
// the bundle does not say.
func (b *Bundle) RefreshHint() time.Duration {
	d, _ := b.parsed.RefreshHint()
	return d
}

// Equal reports whether two bundles have the same content, even if they were parsed from different
// texts.
func (b *Bundle) Equal(o *Bundle) bool { return b.parsed.Equal(o.parsed) }

// CheckAfter returns an error if this bundle must not replace the bundle old. This is so if its
// sequence number is lower than that of old, or if the numbers are equal and the contents differ.
func (b *Bundle) CheckAfter(old *Bundle) error {
	switch n, last := b.Sequence(), old.Sequence(); {
	case n < last:
		return &BundleRollbackError{b.TrustDomain(), n, last}
	case n == last && n != 0 && !b.vouchesAs(old):
		return fmt.Errorf("bundle of %s: sequence number %d with other keys than the one before of that number, want a higher number", b.TrustDomain(), n)
	}
	return nil
}

// vouchesAs reports whether the bundles b and o verify the same identities.
func (b *Bundle) vouchesAs(o *Bundle) bool {
	mine, others := b.parsed.Clone(), o.parsed.Clone()
	mine.ClearRefreshHint()
	others.ClearRefreshHint()
	return mine.Equal(others)
}

// BundleRollbackError means that a trust bundle is older than the bundle in force.
type BundleRollbackError struct {
	TrustDomain     string
	Number, InForce uint64
}

func (e *BundleRollbackError) Error() string {
	return fmt.Sprintf("bundle of %s: sequence number %d, want one after %d, which is in force", e.TrustDomain, e.Number, e.InForce)
}
