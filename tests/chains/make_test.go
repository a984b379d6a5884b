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
	"encoding/asn1"
	"io"
	"math/big"
	"net/url"
	"testing"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/agent/agenttest"
)

// maker makes chains below the root of ca, of which it has the key.
type maker struct {
	t  testing.TB
	ca *agenttest.CA
	n  int64
}

// issuer is a CA certificate with its key.
type issuer struct {
	*x509.Certificate
	key crypto.Signer
}

func (m *maker) must(err error) {
	if err != nil {
		m.t.Helper()
		m.t.Fatal(err)
	}
}

func (m *maker) key() crypto.Signer {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	m.must(err)
	return k
}

func (m *maker) rsa(bits int) crypto.Signer {
	k, err := rsa.GenerateKey(rand.Reader, bits)
	m.must(err)
	return k
}

func (m *maker) sign(c, parent *x509.Certificate, pub crypto.PublicKey, key crypto.Signer) *x509.Certificate {
	m.t.Helper()
	m.n++
	c.SerialNumber = big.NewInt(m.n)
	if c.NotBefore.IsZero() {
		c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, pub, key)
	m.must(err)
	made, err := x509.ParseCertificate(der)
	m.must(err)
	return made
}

// issuing is an issuing CA as florctl ca sign makes it, changed.
func (m *maker) issuing(key crypto.Signer, change ...func(*x509.Certificate)) issuer {
	m.t.Helper()
	c := &x509.Certificate{
		Subject: pkix.Name{CommonName: "issuing"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		PermittedURIDomains: []string{agenttest.Domain}, PermittedDNSDomainsCritical: true,
	}
	for _, f := range change {
		f(c)
	}
	return issuer{m.sign(c, m.ca.RootCertificate, key.Public(), m.ca.RootKey), key}
}

// leaf is an SVID of id as the cert provider issues it, changed, with its chain.
func (m *maker) leaf(by issuer, id florete.ID, key crypto.Signer, change ...func(*x509.Certificate)) tls.Certificate {
	m.t.Helper()
	uri, err := url.Parse(id.String())
	m.must(err)
	c := &x509.Certificate{
		URIs: []*url.URL{uri}, KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, f := range change {
		f(c)
	}
	made := m.sign(c, by.Certificate, key.Public(), by.key)
	return tls.Certificate{Certificate: [][]byte{made.Raw, by.Raw}, PrivateKey: key, Leaf: made}
}

// lookAlikes are n self-made CAs that could all have signed what by signed, of keys that
// are as long as crypto/tls takes them.
func (m *maker) lookAlikes(n int, by issuer) (all [][]byte) {
	for range n {
		c := &x509.Certificate{
			Subject: pkix.Name{CommonName: "issuing"}, SubjectKeyId: by.SubjectKeyId, IsCA: true, BasicConstraintsValid: true,
			KeyUsage: x509.KeyUsageCertSign, PermittedURIDomains: []string{agenttest.Domain}, PermittedDNSDomainsCritical: true,
		}
		all = append(all, m.sign(c, by.Certificate, m.rsa8192().Public(), by.key).Raw)
	}
	return all
}

// forged is an RSA key of 8192 bits with no private half: its signatures are noise.
type forged struct{ public rsa.PublicKey }

func (m *maker) rsa8192() crypto.Signer {
	b := make([]byte, 8192/8)
	_, err := rand.Read(b)
	m.must(err)
	b[0] |= 0x80
	b[len(b)-1] |= 1
	return &forged{rsa.PublicKey{N: new(big.Int).SetBytes(b), E: 65537}}
}

func (f *forged) Public() crypto.PublicKey { return &f.public }

func (f *forged) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return make([]byte, f.public.Size()), nil
}

// uris writes a subject alternative name with URIs as they are.
func uris(texts ...string) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		var names []asn1.RawValue
		for _, s := range texts {
			names = append(names, asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 6, Bytes: []byte(s)})
		}
		value, err := asn1.Marshal(names)
		if err != nil {
			panic(err)
		}
		c.URIs = nil
		c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: value}}
	}
}
