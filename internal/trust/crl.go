package trust

import (
	"crypto/x509"
	"encoding/pem"
)

const typeCRL = "X509 CRL"

// EncodeCRLs encodes certificate revocation lists (CRLs) in PEM.
func EncodeCRLs(lists ...*x509.RevocationList) (b []byte) {
	for _, l := range lists {
		b = append(b, pem.EncodeToMemory(&pem.Block{Type: typeCRL, Bytes: l.Raw})...)
	}
	return b
}

// ParseCRLs parses the certificate revocation lists (CRLs) in a PEM text, which may be empty. PEM
// blocks of other types are ignored.
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
