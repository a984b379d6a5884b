package ca

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"filippo.io/age"
	"filippo.io/age/armor"
)

// seal seals a key with age (age-encryption.org/v1), armored. The age program opens it too.
func seal(plain []byte, to []age.Recipient) ([]byte, error) {
	var b bytes.Buffer
	text := armor.NewWriter(&b)
	w, err := age.Encrypt(text, to...)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(plain); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := text.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Sealed reports whether a key file is sealed.
func Sealed(path string) (bool, error) {
	b, err := os.ReadFile(path)
	return isSealed(b), err
}

func isSealed(b []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(b), []byte(armor.Header)) }

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
