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

	"github.com/florete/florete/internal/agefile"
	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/secretfile"
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

// EncodeKey encodes a private key in PKCS #8 as PEM.
func EncodeKey(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: typeKey, Bytes: der}), nil
}

// Load reads the CA of a trust domain from a certificate file and a key file. It returns an error
// if the key does not belong to the certificate. If the key is encrypted, one of the age identities
// must decrypt it.
func Load(certificatePath, keyPath string, identities ...age.Identity) (*Authority, error) {
	b, err := os.ReadFile(certificatePath)
	if err != nil {
		return nil, err
	}
	return Parse(certificatePath, b, keyPath, identities...)
}

// Parse is like Load, but takes the content of the certificate file, in PEM, instead of its path.
// The first argument is a description of the source of the certificate, for errors.
func Parse(from string, certificate []byte, keyPath string, identities ...age.Identity) (*Authority, error) {
	return parse(from, certificate, keyPath, identities, ofDomain)
}

// ofDomain returns an error unless a certificate belongs to the CA of a trust domain.
func ofDomain(c *x509.Certificate) error {
	if !c.IsCA || len(c.URIs) != 1 {
		return errors.New("not the certificate of a CA with a SPIFFE trust domain")
	}
	_, err := domain(c.URIs[0].Host)
	return err
}

// LoadStore reads the CA of a shared state store, which belongs to no trust domain. It returns an
// error for a CA of another purpose.
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

// parse returns the authority of a PEM certificate and a key file. It returns an error if check
// rejects the certificate.
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

// LoadWith reads the certificate of a CA whose private key is not in a file but, for example, in a
// hardware token. It returns an error if the key does not belong to the certificate. The last
// argument is a description of the place of the key, for errors.
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

// of returns the authority that consists of a certificate and a key. It returns an error if the two
// do not match.
func of(c *x509.Certificate, from string, key crypto.Signer, keyPath string) (*Authority, error) {
	if pub, ok := c.PublicKey.(interface{ Equal(crypto.PublicKey) bool }); !ok || !pub.Equal(key.Public()) {
		return nil, fmt.Errorf("%s: not for the key in %s: sign the request made from that key", from, keyPath)
	}
	return &Authority{Certificate: c, Key: key}, nil
}

// parseAuthority parses the PEM certificate of an authority. It returns an error if check rejects
// the certificate.
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

// LoadKey reads a private key in PKCS #8 PEM from a file. It returns an error if another Unix
// account can read the file. If the file is encrypted with age, one of the identities must decrypt
// it.
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

// Request writes the certificate request of an issuing CA to csrPath. The key of the CA is in the
// file keyPath. If that file does not exist, Request generates the key.
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

// SaveKey atomically writes a private key to a file with mode 0600, in PKCS #8 PEM. With
// recipients, the file is encrypted to them.
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

// Save atomically writes b to a file that all accounts can read (mode 0644). Do not use it for
// private keys.
func Save(path string, b []byte) error {
	return atomicfile.File(path, b, 0o644)
}
