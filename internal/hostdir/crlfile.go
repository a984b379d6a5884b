package hostdir

import (
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/florete/florete/internal/trust"
)

// CRL returns the path of a PEM file with the certificate revocation lists (RFC 5280) of all CAs
// that issue certificates to this host. Activation keeps the file up to date for other programs.
func (l Layout) CRL() string { return filepath.Join(string(l), "crl.pem") }

// CRLs reads the certificate revocation lists in the file Layout.CRL. If the file does not exist,
// it returns none and no error.
func (l Layout) CRLs() ([]*x509.RevocationList, error) {
	b, err := os.ReadFile(l.CRL())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return trust.ParseCRLs(b)
}
