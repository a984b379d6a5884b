package kit

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"io"
	"math/big"
	"net/url"
	"time"

	"github.com/florete/florete/providers/ca"
)

// Sign signs a certificate exactly as the template says, so that a test can create certificates
// that the product would never sign, and check that they are refused. If the template has no
// validity, the certificate is valid from an hour ago until an hour from now.
func Sign(template *x509.Certificate, key crypto.PublicKey, by *ca.Authority) *x509.Certificate {
	if template.NotBefore.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	return must(x509.ParseCertificate(must(x509.CreateCertificate(rand.Reader, template, by.Certificate, key, by.Key))))
}

// SelfSigned is like Sign, but the certificate is signed with its own key.
func SelfSigned(template *x509.Certificate, key crypto.Signer) *x509.Certificate {
	return Sign(template, key.Public(), &ca.Authority{Certificate: template, Key: key})
}

// OddIssuing returns an issuing CA below the given root, for the trust domain Domain. The given
// functions alter its certificate before the root signs it, for example to make it invalid.
func OddIssuing(root *ca.Authority, key crypto.Signer, change ...func(*x509.Certificate)) *ca.Authority {
	c := issuing()
	for _, f := range change {
		f(c)
	}
	return &ca.Authority{Certificate: Sign(c, key.Public(), root), Key: key}
}

// LookAlikes returns n CA certificates in DER that look like the certificate of the given CA: they
// have its subject and key ID. To verify a certificate of that CA, a verifier must try each of
// them. This is slow, because their keys are as long as crypto/tls accepts.
func LookAlikes(n int, of *ca.Authority) (all [][]byte) {
	for range n {
		c := issuing()
		c.Subject, c.SubjectKeyId = of.Certificate.Subject, of.Certificate.SubjectKeyId
		all = append(all, Sign(c, RSA8192().Public(), of).Raw)
	}
	return all
}

func issuing() *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: "issuing"}, URIs: []*url.URL{{Scheme: "spiffe", Host: Domain}},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		PermittedURIDomains: []string{Domain}, PermittedDNSDomainsCritical: true,
	}
}

// forged is an RSA key that has no private half. Instead of signatures it returns random bytes.
type forged struct{ public rsa.PublicKey }

// RSA8192 returns a crypto.Signer with a random RSA public key of 8192 bits. Its signatures are
// invalid, because there is no private key. Generating a real key would take seconds.
func RSA8192() crypto.Signer {
	b := make([]byte, 8192/8)
	_ = must(rand.Read(b))
	b[0] |= 0x80
	b[len(b)-1] |= 1
	return &forged{rsa.PublicKey{N: new(big.Int).SetBytes(b), E: 65537}}
}

func (f *forged) Public() crypto.PublicKey { return &f.public }

func (f *forged) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return make([]byte, f.public.Size()), nil
}

// URIs returns a function to pass to OddIssuing. It replaces the subject alternative names of a
// certificate with the given URIs, which need not be valid.
func URIs(texts ...string) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		var names []asn1.RawValue
		for _, s := range texts {
			names = append(names, asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 6, Bytes: []byte(s)})
		}
		value := must(asn1.Marshal(names))
		c.URIs = nil
		c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: value}}
	}
}
