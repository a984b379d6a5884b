package fetch

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
)

// Names of the values in an answer of kind "tls".
const (
	valueCertificate = "certificate"
	valueKey         = "key"
)

// tlsRequest returns the body of the request for a certificate with public names, and its private
// key. The private key in use is kept until two thirds of the certificate's lifetime are over.
// Until then, a repeated request gets the same certificate, unless the CA asks for an earlier
// renewal. After that, tlsRequest generates a new key.
func (h *Host) tlsRequest(n document.Need, now time.Time) (body json.RawMessage, key string, err error) {
	r, err := n.PublicNames()
	if err != nil || r.Shared || len(r.Names) == 0 {
		return n.Request, "", err
	}
	private := h.delivered(n, now)
	if private == nil {
		if private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return nil, "", err
		}
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: r.Names}, private)
	if err != nil {
		return nil, "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, "", err
	}
	body, err = json.Marshal(struct {
		document.PublicNames
		CSR string `json:"csr"`
	}{r, block("CERTIFICATE REQUEST", csr)})
	return body, block("PRIVATE KEY", der), err
}

// delivered returns the private key in use for a need. It returns nil if a new key must be
// generated, because the names have changed or because most of the certificate's lifetime is over.
func (h *Host) delivered(n document.Need, now time.Time) crypto.Signer {
	dir := hostdir.Current(h.Layout.Need(n.ID))
	var chain, key []byte
	for name, f := range n.Deliver.Files {
		b, err := os.ReadFile(filepath.Join(dir, name))
		switch {
		case err != nil:
			return nil
		case f.Value == valueCertificate:
			chain = b
		case f.Value == valueKey:
			key = b
		}
	}
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil || !pair.Leaf.NotAfter.After(now) {
		return nil
	}
	if now.After(pair.Leaf.NotBefore.Add(pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore) * 2 / 3)) {
		return nil
	}
	signer, _ := pair.PrivateKey.(crypto.Signer)
	return signer
}

// completeTLS checks an answer of kind tls. If this host generated the private key, completeTLS
// adds the key to the answer.
func completeTLS(n document.Need, p pending, answer *hostapi.Answer) *hostapi.Error {
	r, err := n.PublicNames()
	if err != nil {
		return hostapi.Errorf(hostapi.CodeMalformed, "%v", err)
	}
	if len(r.Names) == 0 {
		return nil
	}
	if !r.Shared {
		answer.Values[valueKey] = p.PrivateKey
	}
	pair, err := tls.X509KeyPair([]byte(answer.Values[valueCertificate]), []byte(answer.Values[valueKey]))
	if err == nil {
		err = covers(pair.Leaf, r.Names)
	}
	if err != nil {
		return hostapi.Errorf(hostapi.CodeMalformed, "answer: certificate: %v", err)
	}
	answer.Expires = pair.Leaf.NotAfter.Unix()
	return nil
}

// covers returns an error if a certificate does not contain all of the given names.
func covers(leaf *x509.Certificate, names []string) error {
	has := map[string]bool{}
	for _, n := range leaf.DNSNames {
		has[n] = true
	}
	for _, n := range names {
		if !has[n] {
			return fmt.Errorf("it is for %q, want %q", leaf.DNSNames, n)
		}
	}
	return nil
}
