package attacks

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/tests/kit"
)

// signedBy returns an SVID that is signed with the key of a stolen SVID. The stolen SVID is not a
// CA, so the result must be refused.
func signedBy(t *testing.T, stolen *tls.Certificate, id spiffe.ID) *tls.Certificate {
	t.Helper()
	leaf, err := x509.ParseCertificate(stolen.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	thief := kit.CA{Issuing: &ca.Authority{Certificate: leaf, Key: stolen.PrivateKey.(crypto.Signer)}}
	svid := thief.Issue(id, time.Hour)
	svid.Certificate = append(svid.Certificate, stolen.Certificate[1:]...)
	return svid
}
