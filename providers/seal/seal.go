// Package seal keeps secrets of a provider unreadable in its store: values are
// encrypted (AES-256-GCM), and secrets of our own are derived (HKDF, RFC 5869),
// with a key that lies in a file beside the store and never in it.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"

	"florete/providers/private"

	"github.com/google/renameio/v2"
)

const size = 32

// Key is the key of one provider host.
type Key struct {
	secret string
	aead   cipher.AEAD
}

// New makes a Key of 32 secret bytes.
func New(secret []byte) (*Key, error) {
	if len(secret) != size {
		return nil, fmt.Errorf("sealing key: %d bytes, want %d", len(secret), size)
	}
	k := &Key{secret: string(secret)}
	block, err := aes.NewCipher(k.Derive("florete seal v1", size))
	if err != nil {
		return nil, err
	}
	k.aead, err = cipher.NewGCMWithRandomNonce(block)
	return k, err
}

// Load reads the key file, and makes it when there is none.
func Load(path string) (*Key, error) {
	secret, err := private.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		secret = make([]byte, size)
		rand.Read(secret)
		err = renameio.WriteFile(path, secret, 0o600, renameio.IgnoreUmask())
	}
	if err != nil {
		return nil, fmt.Errorf("sealing key: %w", err)
	}
	k, err := New(secret)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return k, nil
}

// Seal encrypts a value for one place, such as its key in the store.
// Open(place, Seal(place, v)) == v, and no other place opens it.
func (k *Key) Seal(place string, value []byte) []byte {
	return k.aead.Seal(nil, nil, value, []byte(place))
}

// Open decrypts what Seal made for the same place.
func (k *Key) Open(place string, sealed []byte) ([]byte, error) {
	v, err := k.aead.Open(nil, nil, sealed, []byte(place))
	if err != nil {
		return nil, fmt.Errorf("%s: does not open with this sealing key: the key file or the store was replaced", place)
	}
	return v, nil
}

// Derive makes n secret bytes for a purpose. The same purpose gives the same bytes
// for as long as the key file lives.
func (k *Key) Derive(purpose string, n int) []byte {
	b, err := hkdf.Key(sha256.New, []byte(k.secret), nil, purpose, n)
	if err != nil {
		panic(err) // n is a constant of the caller, far below HKDF's limit
	}
	return b
}
