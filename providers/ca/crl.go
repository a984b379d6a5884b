package ca

import (
	"crypto/rand"
	"crypto/x509"
	"math/big"
	"time"

	"github.com/florete/florete/internal/trust"
)

// SignCRL signs a certificate revocation list (RFC 5280 section 5) with certificates that the
// authority has issued. The number must be higher than the number of the previous list. The given
// lifetime determines when the next list is due.
func (a *Authority) SignCRL(revoked []x509.RevocationListEntry, number *big.Int, lifetime time.Duration, now time.Time) (*x509.RevocationList, error) {
	der, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{
		RevokedCertificateEntries: revoked, Number: number, ThisUpdate: now.Add(-trust.Backdated), NextUpdate: now.Add(lifetime),
	}, a.Certificate, a.Key)
	if err != nil {
		return nil, err
	}
	return x509.ParseRevocationList(der)
}
