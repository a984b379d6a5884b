package attacks

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/url"
	"testing"
	"time"

	"github.com/florete/florete"
)

// authority signs what it should not.
type authority struct {
	chain [][]byte // of its own certificate, leaf first
	cert  *x509.Certificate
	key   crypto.Signer
}

// newCA makes an authority of a certificate that was stolen, or, without one, one that
// nobody trusts.
func newCA(t *testing.T, stolen *tls.Certificate) *authority {
	t.Helper()
	if stolen != nil {
		leaf, err := x509.ParseCertificate(stolen.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		return &authority{stolen.Certificate, leaf, stolen.PrivateKey.(crypto.Signer)}
	}
	key := newKey(t)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	return &authority{cert: c, key: key}
}

// issue makes an SVID with all that one has.
func (a *authority) issue(t *testing.T, id florete.ID) *tls.Certificate {
	t.Helper()
	uri, err := url.Parse(id.String())
	if err != nil {
		t.Fatal(err)
	}
	key := newKey(t)
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), URIs: []*url.URL{uri},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, leaf, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: append([][]byte{der}, a.chain...), PrivateKey: key}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// csr is a certificate request (PKCS #10) of a new key, as PEM.
func csr(t *testing.T) string {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, newKey(t))
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}
