package ca

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"time"

	"github.com/florete/florete"
)

const typeCRL = "X509 CRL"

// SignCRL signs a certificate revocation list (RFC 5280 section 5) of certificates that the
// authority issued.
func (a *Authority) SignCRL(revoked []x509.RevocationListEntry, number *big.Int, lifetime time.Duration, now time.Time) (*x509.RevocationList, error) {
	der, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{
		RevokedCertificateEntries: revoked, Number: number, ThisUpdate: now.Add(-florete.Backdated), NextUpdate: now.Add(lifetime),
	}, a.Certificate, a.Key)
	if err != nil {
		return nil, err
	}
	return x509.ParseRevocationList(der)
}

// EncodeCRLs writes revocation lists as PEM.
func EncodeCRLs(lists ...*x509.RevocationList) (b []byte) {
	for _, l := range lists {
		b = append(b, pem.EncodeToMemory(&pem.Block{Type: typeCRL, Bytes: l.Raw})...)
	}
	return b
}

// ParseCRLs reads revocation lists in PEM.
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
