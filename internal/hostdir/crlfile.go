package hostdir

import (
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/florete/florete/internal/trust"
)

// CRL is the file that activation keeps for software that is not ours: the certificate
// revocation lists (RFC 5280) of all issuing CAs that this host gets certificates from, in PEM.
func (l Layout) CRL() string { return filepath.Join(string(l), "crl.pem") }

// CRLs are the lists in that file, none where there is no file.
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
