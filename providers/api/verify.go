package api

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	"florete"

	"github.com/spiffe/go-spiffe/v2/bundle/x509bundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/svid/x509svid"
)

// Roots are the trust roots of a document: PEM certificates, at least one.
func Roots(trustDomain string, t florete.Trust) (*x509bundle.Bundle, error) {
	td, err := spiffeid.TrustDomainFromString(trustDomain)
	if err != nil {
		return nil, fmt.Errorf("trust domain %q: %w", trustDomain, err)
	}
	bundle := x509bundle.New(td)
	for i, text := range t.Roots {
		block, rest := pem.Decode([]byte(text))
		if block == nil || block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("trust root %d: not a PEM certificate", i)
		}
		if next, _ := pem.Decode(rest); next != nil {
			return nil, fmt.Errorf("trust root %d: more than one PEM block, want one certificate in each", i)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("trust root %d: %w", i, err)
		}
		bundle.AddX509Authority(c)
	}
	if bundle.Empty() {
		return nil, fmt.Errorf("trust domain %s: no trust roots", trustDomain)
	}
	return bundle, nil
}

// Peer verifies the chain that the other side of a connection presented and
// returns whose it is. The error is an *Error: transient and clock when nothing
// but the time is wrong, else denied and untrusted.
func Peer(chain []*x509.Certificate, roots *x509bundle.Bundle) (florete.ID, error) {
	sid, _, err := x509svid.Verify(chain, roots)
	if err != nil {
		if at := begin(chain); !at.IsZero() {
			if _, _, late := x509svid.Verify(chain, roots, x509svid.WithTime(at)); late == nil {
				leaf := chain[0]
				return florete.ID{}, Errorf(Transient, CodeClock,
					"certificate of %s is valid from %s to %s, here it is %s: renew it or set the clock",
					leaf.URIs[0], leaf.NotBefore.Format(time.RFC3339), leaf.NotAfter.Format(time.RFC3339), time.Now().UTC().Format(time.RFC3339))
			}
		}
		return florete.ID{}, Errorf(Denied, CodeUntrusted, "peer's certificate: %v", err)
	}
	id, err := florete.ParseID(sid.String())
	if err != nil {
		return florete.ID{}, Errorf(Denied, CodeUntrusted, "peer's certificate: %v", err)
	}
	return id, nil
}

// begin is when the last certificate of the chain became valid.
func begin(chain []*x509.Certificate) (at time.Time) {
	for _, c := range chain {
		if c.NotBefore.After(at) {
			at = c.NotBefore
		}
	}
	return at
}
