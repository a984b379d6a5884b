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

// Sign signs a certificate as given, even one that the product would never sign, so that tests can
// check that it is refused. If the template has no validity, the certificate is valid from an hour
// ago until an hour from now.
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

// OddIssuing returns an issuing CA of the trust domain Domain below the given root. The further
// functions alter its certificate before it is signed.
func OddIssuing(root *ca.Authority, key crypto.Signer, change ...func(*x509.Certificate)) *ca.Authority {
	c := issuing()
	for _, f := range change {
		f(c)
	}
	return &ca.Authority{Certificate: Sign(c, key.Public(), root), Key: key}
}

// LookAlikes returns n CA certificates in DER with the subject and key ID of the given CA. A
// verifier must try each of them as the issuer of that CA's certificates. Their keys are as long as
// crypto/tls accepts, so that this is slow.
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

// RSA8192 returns a random RSA public key of 8192 bits as a crypto.Signer with invalid signatures.
// Generating a real key would take seconds.
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

// URIs returns a function for OddIssuing that replaces the subject alternative names of a
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
