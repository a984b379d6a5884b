package federation

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/spiffetls/tlsconfig"

	"github.com/florete/florete"
)

// endpointTLS wants the SPIFFE ID of a trust domain's endpoint, by a certificate that the
// bundle verifies. Nothing is presented there, and nothing resumed.
func endpointTLS(t *trust, by *florete.Bundle) *tls.Config {
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

// checkCost bounds what verifying a chain costs.
func checkCost(raw [][]byte) error {
	var chain []*x509.Certificate
	for _, der := range raw {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return err
		}
		chain = append(chain, c)
	}
	return florete.CheckChain(chain)
}

// readAll reads no more than a bundle may have.
func readAll(r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, florete.MaxBundle+1))
	if err == nil && len(b) > florete.MaxBundle {
		err = fmt.Errorf("more than %d bytes", florete.MaxBundle)
	}
	return b, err
}
