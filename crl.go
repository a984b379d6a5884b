package florete

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

const typeCRL = "X509 CRL"

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
	return ParseCRLs(b)
}

// EncodeCRLs writes certificate revocation lists as PEM.
func EncodeCRLs(lists ...*x509.RevocationList) (b []byte) {
	for _, l := range lists {
		b = append(b, pem.EncodeToMemory(&pem.Block{Type: typeCRL, Bytes: l.Raw})...)
	}
	return b
}

// ParseCRLs reads certificate revocation lists in PEM.
func ParseCRLs(b []byte) (lists []*x509.RevocationList, err error) {
	for {
		var block *pem.Block
		if block, b = pem.Decode(b); block == nil {
			return lists, nil
		}
		if block.Type != typeCRL {
			continue
		}
		l, err := x509.ParseRevocationList(block.Bytes)
		if err != nil {
			return nil, err
		}
		lists = append(lists, l)
	}
}
