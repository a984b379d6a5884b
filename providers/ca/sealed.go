package ca

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"io"
	"strings"

	"filippo.io/age"
	"filippo.io/age/armor"

	"github.com/florete/florete/providers/replace"
)

// SealKey writes a private key sealed with age (age-encryption.org/v1), armored, mode 0600,
// whole or not at all. The age program opens it as well.
func SealKey(path string, key crypto.Signer, to ...age.Recipient) error {
	plain, err := EncodeKey(key)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	text := armor.NewWriter(&b)
	w, err := age.Encrypt(text, to...)
	if err != nil {
		return err
	}
	if _, err := w.Write(plain); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := text.Close(); err != nil {
		return err
	}
	return replace.File(path, b.Bytes(), 0o600)
}

// Sealed reports whether a key file is sealed.
func Sealed(b []byte) bool { return strings.HasPrefix(strings.TrimSpace(string(b)), armor.Header) }

// unseal is what was sealed, with one of the identities.
func unseal(b []byte, identities []age.Identity) ([]byte, error) {
	if len(identities) == 0 {
		return nil, errors.New("sealed with age: want the identity that opens it")
	}
	r, err := age.Decrypt(armor.NewReader(bytes.NewReader(bytes.TrimSpace(b))), identities...)
	if err != nil {
		return nil, fmt.Errorf("sealed with age: %w", err)
	}
	return io.ReadAll(r)
}
