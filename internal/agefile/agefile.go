// Package agefile encrypts secrets that are kept in files, such as the key of a CA. Files are
// encrypted with age (age-encryption.org/v1) to a passphrase or to public keys of age and SSH. The
// age program can open them, too.
package agefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"filippo.io/age"
	"filippo.io/age/armor"
)

// Seal encrypts plain with age, so that each of the recipients can decrypt it. The result is in
// age's ASCII armor.
func Seal(plain []byte, to []age.Recipient) ([]byte, error) {
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

// Sealed reports whether b is encrypted with age in ASCII armor.
func Sealed(b []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(b), []byte(armor.Header)) }

// Open decrypts an armored age file with one of the identities. If no identity matches, or if the
// file was changed since it was encrypted, Open returns an error and no plaintext.
func Open(b []byte, identities []age.Identity) ([]byte, error) {
	if len(identities) == 0 {
		return nil, errors.New("sealed with age: want the identity that opens it")
	}
	r, err := age.Decrypt(armor.NewReader(bytes.NewReader(bytes.TrimSpace(b))), identities...)
	if err != nil {
		return nil, fmt.Errorf("sealed with age: %w", err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("sealed with age: %w: it was changed or cut short", err)
	}
	return plain, nil
}
