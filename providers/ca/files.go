package ca

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"filippo.io/age"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/secretfile"
	"github.com/florete/florete/providers/agefile"
)

const (
	typeCertificate = "CERTIFICATE"
	typeCSR         = "CERTIFICATE REQUEST"
	typeKey         = "PRIVATE KEY"
)

// EncodeCertificates encodes certificates as PEM.
func EncodeCertificates(chain ...*x509.Certificate) []byte {
	var b bytes.Buffer
	for _, c := range chain {
		_ = pem.Encode(&b, &pem.Block{Type: typeCertificate, Bytes: c.Raw}) // a bytes.Buffer takes everything
	}
	return b.Bytes()
}

// EncodeKey encodes a private key as PEM in PKCS #8.
func EncodeKey(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: typeKey, Bytes: der}), nil
}

// Load reads an authority from its certificate file and its key file. identities open an encrypted
// key.
func Load(certificatePath, keyPath string, identities ...age.Identity) (*Authority, error) {
	b, err := os.ReadFile(certificatePath)
	if err != nil {
		return nil, err
	}
	return Parse(certificatePath, b, keyPath, identities...)
}

// Parse returns the authority with a PEM certificate, which came from the place from, and with the
// key in a file.
func Parse(from string, certificate []byte, keyPath string, identities ...age.Identity) (*Authority, error) {
	return parse(from, certificate, keyPath, identities, ofDomain)
}

// ofDomain returns an error unless a certificate belongs to a CA of a trust domain.
func ofDomain(c *x509.Certificate) error {
	if !c.IsCA || len(c.URIs) != 1 {
		return errors.New("not the certificate of a CA with a SPIFFE trust domain")
	}
	_, err := domain(c.URIs[0].Host)
	return err
}

// LoadStore reads the CA of a state store, which belongs to no trust domain.
func LoadStore(certificatePath, keyPath string) (*Authority, error) {
	b, err := os.ReadFile(certificatePath)
	if err != nil {
		return nil, err
	}
	return parse(certificatePath, b, keyPath, nil, func(c *x509.Certificate) error {
		if !c.IsCA || len(c.URIs) != 0 {
			return errors.New("not the CA of a store: florctl store init makes one")
		}
		return nil
	})
}

// parse returns the authority of a certificate that passes check.
func parse(from string, certificate []byte, keyPath string, identities []age.Identity, check func(*x509.Certificate) error) (*Authority, error) {
	c, err := parseAuthority(from, certificate, check)
	if err != nil {
		return nil, err
	}
	key, err := LoadKey(keyPath, identities...)
	if err != nil {
		return nil, err
	}
	return of(c, from, key, keyPath)
}

// LoadWith reads the certificate of an authority whose key is elsewhere, such as in a token; where
// names that place in errors.
func LoadWith(certificatePath string, key crypto.Signer, where string) (*Authority, error) {
	b, err := os.ReadFile(certificatePath)
	if err != nil {
		return nil, err
	}
	c, err := parseAuthority(certificatePath, b, ofDomain)
	if err != nil {
		return nil, err
	}
	return of(c, certificatePath, key, where)
}

// of returns the authority of a certificate and its key.
func of(c *x509.Certificate, from string, key crypto.Signer, keyPath string) (*Authority, error) {
	if pub, ok := c.PublicKey.(interface{ Equal(crypto.PublicKey) bool }); !ok || !pub.Equal(key.Public()) {
		return nil, fmt.Errorf("%s: not for the key in %s: sign the request made from that key", from, keyPath)
	}
	return &Authority{Certificate: c, Key: key}, nil
}

// parseAuthority parses a PEM certificate that must pass check.
func parseAuthority(from string, certificate []byte, check func(*x509.Certificate) error) (*x509.Certificate, error) {
	der, err := one(certificate, typeCertificate)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	c, err := x509.ParseCertificate(der)
	if err == nil {
		err = check(c)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	return c, nil
}

// Sealed reports whether a key file is encrypted.
func Sealed(path string) (bool, error) {
	b, err := os.ReadFile(path)
	return agefile.Sealed(b), err
}

// LoadKey reads a private key from a file that no other account can read. identities open an
// encrypted key.
func LoadKey(path string, identities ...age.Identity) (crypto.Signer, error) {
	b, err := secretfile.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if agefile.Sealed(b) {
		if b, err = agefile.Open(b, identities); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	der, err := one(b, typeKey)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	k, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	key, ok := k.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%s: a %T cannot sign", path, k)
	}
	return key, nil
}

// Request makes the key of an issuing CA, unless it exists, and its certificate request.
func Request(trustDomain, keyPath, csrPath string) error {
	key, err := LoadKey(keyPath)
	if errors.Is(err, fs.ErrNotExist) {
		if key, err = NewKey(); err != nil {
			return err
		}
		err = SaveKey(keyPath, key)
	}
	if err != nil {
		return err
	}
	csr, err := NewIssuingCSR(trustDomain, key)
	if err != nil {
		return err
	}
	return Save(csrPath, csr)
}

// SaveKey atomically writes a private key with mode 0600, encrypted to the recipients if there are
// any.
func SaveKey(path string, key crypto.Signer, to ...age.Recipient) error {
	b, err := EncodeKey(key)
	if err == nil && len(to) > 0 {
		b, err = agefile.Seal(b, to)
	}
	if err != nil {
		return err
	}
	return atomicfile.File(path, b, 0o600)
}

// Save atomically writes a public file with mode 0644.
func Save(path string, b []byte) error {
	return atomicfile.File(path, b, 0o644)
}
