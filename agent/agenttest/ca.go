// Package agenttest is a small cluster for tests of the forwarder: a certificate
// authority with real keys, and hosts whose state directories hold what activation
// would have put there.
package agenttest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/url"
	"testing"
	"time"

	"github.com/florete/florete"
)

// Domain is the trust domain of test clusters.
const Domain = "demo.flor"

// ID makes the ID "kind/name" or "kind/node/name" in Domain.
func ID(short string) florete.ID {
	id, err := florete.ParseID("spiffe://" + Domain + "/" + short)
	if err != nil {
		panic(err)
	}
	return id
}

// CA is an operator root with one issuing certificate.
type CA struct {
	Root            string // PEM
	RootCertificate *x509.Certificate
	RootKey         *ecdsa.PrivateKey
	issuing         *x509.Certificate
	key             *ecdsa.PrivateKey
	intermediatePEM []byte
}

// NewCA makes a CA that nobody else trusts.
func NewCA(t testing.TB) *CA {
	t.Helper()
	rootKey, key := newKey(t), newKey(t)
	root := sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "root"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil, &rootKey.PublicKey, rootKey)
	issuing := sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "issuing"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		PermittedURIDomains: []string{Domain}, PermittedDNSDomainsCritical: true,
	}, root, &key.PublicKey, rootKey)
	return &CA{Root: string(certPEM(root)), RootCertificate: root, RootKey: rootKey, issuing: issuing, key: key, intermediatePEM: certPEM(issuing)}
}

// Renew signs the issuing certificate anew, for so long.
func (ca *CA) Renew(t testing.TB, lifetime time.Duration) {
	t.Helper()
	c := *ca.issuing
	c.NotAfter = time.Now().Add(lifetime)
	ca.issuing = sign(t, &c, ca.RootCertificate, &ca.key.PublicKey, ca.RootKey)
	ca.intermediatePEM = certPEM(ca.issuing)
}

// Issue makes an SVID and its key, as PEM, valid until now+lifetime, which may be
// negative.
func (ca *CA) Issue(t testing.TB, id florete.ID, lifetime time.Duration) (svid, key []byte) {
	t.Helper()
	k := newKey(t)
	uri, err := url.Parse(id.String())
	if err != nil {
		t.Fatal(err)
	}
	leaf := sign(t, &x509.Certificate{
		URIs: []*url.URL{uri}, KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotAfter:    time.Now().Add(lifetime),
	}, ca.issuing, &k.PublicKey, ca.key)
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return append(certPEM(leaf), ca.intermediatePEM...), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func sign(t testing.TB, c, parent *x509.Certificate, pub *ecdsa.PublicKey, key *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber = serial
	c.NotBefore = time.Now().Add(-time.Hour)
	if c.NotAfter.IsZero() {
		c.NotAfter = time.Now().Add(time.Hour)
	}
	if parent == nil {
		parent = c
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, pub, key)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func certPEM(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}
