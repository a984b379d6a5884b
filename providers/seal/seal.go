// Package seal keeps secrets of a provider unreadable in its store: values are
// encrypted (AES-256-GCM), and secrets of our own are derived (HKDF, RFC 5869),
// with a key that lies in a file beside the store and never in it.
package seal

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"

	"github.com/florete/florete/providers/private"
	"github.com/florete/florete/providers/replace"
	"github.com/florete/florete/providers/store"
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
		err = replace.File(path, secret, 0o600)
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

// bound is where a store keeps what tells its key from another.
const bound = "seal/bound"

// Bind ties the key to a store at their first use, and refuses a store that is tied
// to another: its answers could not be opened, and secrets derived anew would not be
// those that hosts have.
func (k *Key) Bind(ctx context.Context, s store.Store) error {
	e, err := s.Get(ctx, bound)
	switch {
	case err == nil:
		if _, err := k.Open(bound, e.Value); err != nil {
			return errors.New("the sealing key is not the one that this store was made with: restore that one, or remove the store to begin anew")
		}
		return nil
	case !errors.Is(err, store.ErrNotFound):
		return err
	}
	_, err = s.Commit(ctx, store.Txn{If: []store.Cond{{Key: bound}}, Then: []store.Op{store.Put(bound, k.Seal(bound, nil))}})
	return err
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
