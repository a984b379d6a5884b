package federation

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/spiffetls/tlsconfig"

	"github.com/florete/florete/internal/trust"
)

// authentication is the rule in the policy by which an endpoint is authenticated.
type authentication struct {
	Profile       string   `json:"profile"`       // empty for https_spiffe
	EndpointID    string   `json:"endpointID"`    // SPIFFE ID of the endpoint, with https_spiffe
	EndpointRoots []string `json:"endpointRoots"` // roots in PEM, with https_web; empty for the roots of the machine
}

// authenticate sets the rule by which the endpoint of a trust domain is authenticated.
func (t *trusted) authenticate(by authentication) (err error) {
	switch by.Profile {
	case "", profileSPIFFE:
		if len(by.EndpointRoots) > 0 {
			return fmt.Errorf("endpoint roots: want none with profile %s", profileSPIFFE)
		}
		if t.endpointID, err = spiffeid.FromString(by.EndpointID); err != nil || t.endpointID.TrustDomain().Name() != t.name {
			return fmt.Errorf("endpoint ID %q: want one of %s", by.EndpointID, t.name)
		}
		return nil
	case profileWeb:
		if by.EndpointID != "" {
			return fmt.Errorf("endpoint ID %s: want none with profile %s", by.EndpointID, profileWeb)
		}
	default:
		return fmt.Errorf("endpoint profile %q: want %s or %s", by.Profile, profileSPIFFE, profileWeb)
	}
	for _, text := range by.EndpointRoots {
		roots, err := trust.ParseCertificates([]byte(text))
		if err != nil {
			return fmt.Errorf("endpoint roots: %w", err)
		}
		if t.webRoots == nil {
			t.webRoots = x509.NewCertPool()
		}
		for _, c := range roots {
			t.webRoots.AddCert(c)
		}
	}
	return nil
}

// endpointTLS returns the client configuration for the endpoint of a foreign trust domain. The
// endpoint must present its SPIFFE ID in a certificate that the given bundle verifies. With profile
// https_web it must instead present a certificate for its name. The client presents no certificate,
// and sessions are not resumed.
func endpointTLS(t *trusted, by *trust.Bundle) *tls.Config {
	if t.endpointID.IsZero() {
		return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: t.webRoots}
	}
	config := tlsconfig.TLSClientConfig(by.SPIFFE(), func(id spiffeid.ID, _ [][]*x509.Certificate) error {
		if id != t.endpointID {
			return fmt.Errorf("it is %s, want %s", id, t.endpointID)
		}
		return nil
	})
	verify := config.VerifyPeerCertificate
	config.VerifyPeerCertificate = func(raw [][]byte, chains [][]*x509.Certificate) error {
		err := checkCost(raw)
		if err == nil {
			err = verify(raw, chains)
		}
		if err != nil {
			return &refusedError{codeEndpoint, fmt.Errorf("endpoint of %s: %w", t.name, err)}
		}
		return nil
	}
	return config
}

// checkCost refuses certificate chains whose verification would take too long.
func checkCost(raw [][]byte) error {
	var chain []*x509.Certificate
	for _, der := range raw {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return err
		}
		chain = append(chain, c)
	}
	return trust.CheckChain(chain)
}

// readAll reads a bundle, and returns an error if it is longer than the largest bundle.
func readAll(r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, trust.MaxBundle+1))
	if err == nil && len(b) > trust.MaxBundle {
		err = fmt.Errorf("more than %d bytes", trust.MaxBundle)
	}
	return b, err
}
