package chains

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/url"
	"testing"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/tests/kit"
)

// maker makes the unusual certificate chains that the tests present.
type maker struct{ testing.TB }

func (m maker) must(err error) {
	if err != nil {
		m.Helper()
		m.Fatal(err)
	}
}

func (m maker) key() crypto.Signer { return m.ecdsa(elliptic.P256()) }

func (m maker) ecdsa(c elliptic.Curve) crypto.Signer {
	k, err := ecdsa.GenerateKey(c, rand.Reader)
	m.must(err)
	return k
}

func (m maker) rsa(bits int) crypto.Signer {
	k, err := rsa.GenerateKey(rand.Reader, bits)
	m.must(err)
	return k
}

// unconstrained returns a CA whose root has no name constraint, as other programs create it.
func (m maker) unconstrained() *kit.CA {
	key := m.key()
	root := kit.SelfSigned(&x509.Certificate{
		Subject: pkix.Name{CommonName: "root"}, URIs: []*url.URL{{Scheme: "spiffe", Host: kit.Domain}},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, key)
	return (&kit.CA{Root: &ca.Authority{Certificate: root, Key: key}}).Beside()
}

// leaf returns an SVID with its chain, like one that the cert provider issues. The functions in
// change alter the certificate first.
func (m maker) leaf(by *ca.Authority, id spiffe.ID, key crypto.Signer, change ...func(*x509.Certificate)) tls.Certificate {
	m.Helper()
	uri, err := url.Parse(id.String())
	m.must(err)
	c := &x509.Certificate{
		URIs: []*url.URL{uri}, KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, f := range change {
		f(c)
	}
	made := kit.Sign(c, key.Public(), by)
	return tls.Certificate{Certificate: [][]byte{made.Raw, by.Certificate.Raw}, PrivateKey: key, Leaf: made}
}
