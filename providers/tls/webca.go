package tls

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/announced"
)

// lifetime is the lifetime of certificates for names outside DNS.
const lifetime = 90 * 24 * time.Hour

// These are the beginning and the end of the validity of the root for names outside DNS. They are
// fixed, because the root is derived again each time and must always be the same.
var (
	rootBegins = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	rootEnds   = time.Date(2056, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Root describes the root certificate of the CA that issues certificates for names outside of the
// public DNS. It is the answer to an operator who requests that certificate.
type Root struct {
	Certificate string   `json:"certificate"` // certificate in PEM
	Fingerprint string   `json:"fingerprint"` // SHA-256 fingerprint in lower-case hex
	Domains     []string `json:"domains"`     // domains for which alone the root is valid
}

// root returns the CA for the policy's domains outside DNS. The certificate and its key are derived
// from the provider's key, so that nothing is stored. All hosts with the same key derive the same
// CA.
func (k *Certificates) root(p *Policy) (*x509.Certificate, error) {
	key := k.rootKey(p)
	spki, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	id := sha256.Sum256(spki)
	template := &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(id[:16]),
		Subject:      pkix.Name{CommonName: "Florete " + p.trustDomain + " web " + hex.EncodeToString(id[:4])},
		NotBefore:    rootBegins, NotAfter: rootEnds,
		KeyUsage: x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true, SubjectKeyId: id[:20],
		PermittedDNSDomainsCritical: true, PermittedDNSDomains: slices.Sorted(slices.Values(p.Internal)),
	}
	der, err := x509.CreateCertificate(nil, template, template, key.Public(), key) // RFC 6979
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func (k *Certificates) rootKey(p *Policy) *ecdsa.PrivateKey {
	return k.derivedKey("florete tls ca v1\n" + p.trustDomain + "\n" + strings.Join(slices.Sorted(slices.Values(p.Internal)), "\n"))
}

// issue signs a certificate for names outside DNS.
func (k *Certificates) issue(w wanted, now time.Time) (*record, error) {
	root, err := k.root(w.policy)
	if err != nil {
		return nil, err
	}
	key, csr := "", w.csr
	if w.Shared {
		if key, csr, err = newKey(w.Names); err != nil {
			return nil, err
		}
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial.Add(serial, big.NewInt(1)), DNSNames: w.Names,
		NotBefore: now.Add(-5 * time.Minute).UTC(), NotAfter: now.Add(lifetime).UTC(),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, root, csr.PublicKey, k.rootKey(w.policy))
	if err != nil {
		return nil, err
	}
	r, err := newRecord(encode(der), w, now)
	if err == nil {
		r.Key = key
	}
	return r, err
}

func encode(der []byte) string {
	var b bytes.Buffer
	_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: der}) // into memory
	return b.String()
}

// endpoint returns the endpoint at which operators get the root that browsers must trust.
func (k *Certificates) endpoint() announced.Endpoint {
	return announced.Endpoint{Method: "GET", Path: "/v1/tls/root", Access: document.AccessRead, Answer: func(*announced.Call) (any, error) {
		p := k.Policy()
		if p == nil || len(p.Internal) == 0 {
			return nil, hostapi.Errorf(hostapi.CodeMissingDenied, "no names outside DNS: write providers.tls.internal")
		}
		root, err := k.root(p)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(root.Raw)
		return Root{encode(root.Raw), hex.EncodeToString(sum[:]), root.PermittedDNSDomains}, nil
	}}
}
