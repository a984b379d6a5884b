package ca

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/url"

	"github.com/florete/florete/internal/pubkey"
	"github.com/florete/florete/internal/spiffe"
)

// NewCSR returns a certificate request (RFC 2986) for an SVID with the given SPIFFE ID, in PEM.
func NewCSR(id spiffe.ID, key crypto.Signer) ([]byte, error) { return newCSR(id.String(), key) }

// NewIssuingCSR returns a certificate request, in PEM, for an issuing CA of a trust domain. The
// root signs the request; see SignIssuing.
func NewIssuingCSR(trustDomain string, key crypto.Signer) ([]byte, error) {
	name, err := domain(trustDomain)
	if err != nil {
		return nil, err
	}
	return newCSR(name.String(), key)
}

func newCSR(uri string, key crypto.Signer) ([]byte, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{URIs: []*url.URL{u}}, key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: typeCSR, Bytes: der}), nil
}

// DecodeCSR decodes a certificate request from PEM to DER. It does not verify the request's
// signature.
func DecodeCSR(csr []byte) ([]byte, error) {
	der, err := one(csr, typeCSR)
	if err != nil {
		return nil, fmt.Errorf("certificate request: %w", err)
	}
	return der, nil
}

// ParseCSR verifies the signature of a certificate request in PEM, and returns the public key in
// the request. A request may name no SPIFFE ID. If it names another than the given one, ParseCSR
// returns an error.
func ParseCSR(csr []byte, id spiffe.ID) (crypto.PublicKey, error) {
	r, err := parseCSR(csr)
	if err != nil {
		return nil, err
	}
	if len(r.DNSNames)+len(r.IPAddresses)+len(r.EmailAddresses) > 0 {
		return nil, fmt.Errorf("certificate request: names hosts or addresses, want nothing but the SPIFFE ID %s", id)
	}
	if len(r.URIs) > 1 || len(r.URIs) == 1 && r.URIs[0].String() != id.String() {
		return nil, fmt.Errorf("certificate request: for %v, want %s", r.URIs, id)
	}
	return r.PublicKey, nil
}

// parseCSR checks that the request is signed by its own key and that the key is
// strong enough.
func parseCSR(b []byte) (*x509.CertificateRequest, error) {
	der, err := DecodeCSR(b)
	if err != nil {
		return nil, err
	}
	r, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return nil, fmt.Errorf("certificate request: %w", err)
	}
	if err := pubkey.Check(r.PublicKey); err != nil {
		return nil, fmt.Errorf("certificate request: %w", err)
	}
	if err := r.CheckSignature(); err != nil {
		return nil, fmt.Errorf("certificate request: %w: it must be signed by the key that it is for", err)
	}
	return r, nil
}

// one returns the content of the only PEM block in b. It returns an error if b has more than one
// block, or a block of another kind.
func one(b []byte, kind string) ([]byte, error) {
	block, rest := pem.Decode(b)
	switch {
	case block == nil:
		return nil, fmt.Errorf("not PEM, want one block %q", kind)
	case block.Type != kind:
		return nil, fmt.Errorf("a PEM block %q, want %q", block.Type, kind)
	case len(bytes.TrimSpace(rest)) > 0:
		return nil, fmt.Errorf("more than one PEM block %q, want one", kind)
	}
	return block.Bytes, nil
}
