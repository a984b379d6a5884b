// Package identity holds what proves who this host's parts are and whom to
// believe: its X.509-SVIDs as activation delivered them, and the trust roots of
// its manifest.
package identity

import (
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/x509bundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/svid/x509svid"

	"florete"
)

// Trust verifies X.509-SVIDs of one trust domain. It does not change.
type Trust struct{ bundle *x509bundle.Bundle }

// NewTrust reads the manifest's roots (PEM).
func NewTrust(trustDomain string, roots []string) (*Trust, error) {
	td, err := spiffeid.TrustDomainFromString(trustDomain)
	if err != nil {
		return nil, fmt.Errorf("trust domain %q: %w", trustDomain, err)
	}
	bundle, err := x509bundle.Parse(td, []byte(strings.Join(roots, "\n")))
	if err != nil {
		return nil, fmt.Errorf("trust roots of %s: %w", trustDomain, err)
	}
	if bundle.Empty() {
		return nil, fmt.Errorf("trust roots of %s: none", trustDomain)
	}
	return &Trust{bundle}, nil
}

// Equal tells whether t and o believe the same.
func (t *Trust) Equal(o *Trust) bool { return t == o || t.bundle.Equal(o.bundle) }

// Verify checks that chain, leaf first, leads to a root at the given time, and
// returns the identity in the leaf's only URI SAN. With an error, the identity is
// what the leaf claims, if anything.
func (t *Trust) Verify(chain []*x509.Certificate, at time.Time) (florete.ID, error) {
	sid, _, err := x509svid.Verify(chain, t.bundle, x509svid.WithTime(at))
	if sid.IsZero() {
		return florete.ID{}, err
	}
	id, idErr := florete.ParseID(sid.String())
	if err == nil {
		err = idErr
	}
	return id, err
}
