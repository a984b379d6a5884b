// Package sealedstore keeps secrets of a provider unreadable in its store: values are
// encrypted (AES-256-GCM), and secrets of our own are derived (HKDF, RFC 5869),
// with a key that lies in a file beside the store and never in it.
package sealedstore

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
	"os"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/secretfile"
	"github.com/florete/florete/providers/store"
)

const size = 32

// ErrUnreadable is of a value that none of the secrets of a key opens.
var ErrUnreadable = errors.New("does not open with this sealing key")

// Key is the key of one provider host, or of all replicas.
type Key struct {
	root  string        // that secrets are derived from
	aeads []cipher.AEAD // the newest first, which seals
}

// New makes a Key of secrets of 32 bytes, the newest first: that seals, each of them opens,
// and the last is what other secrets are derived from.
func New(secrets ...[]byte) (*Key, error) {
	k := &Key{}
	for _, secret := range secrets {
		if len(secret) != size {
			return nil, fmt.Errorf("sealing key: %d bytes, want %d", len(secret), size)
		}
		k.root = string(secret)
		block, err := aes.NewCipher(k.Derive("florete seal v1", size))
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, err
		}
		k.aeads = append(k.aeads, aead)
	}
	if len(k.aeads) == 0 {
		return nil, errors.New("sealing key: none")
	}
	return k, nil
}

// Secret makes one for New.
func Secret() []byte {
	secret := make([]byte, size)
	rand.Read(secret)
	return secret
}

// Load reads the key file, and makes it when there is none.
func Load(path string) (*Key, error) {
	secret, err := secretfile.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		secret = Secret()
		err = atomicfile.File(path, secret, 0o600)
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

// Of is the key of a store, in a file beside it. It is made with the store, and is the store's
// alone: where that is new, so is the key, whatever file is there. So nothing that was derived
// for a state that is lost comes back, such as a secret that was replaced since. The former
// file is kept beside it, and used again with the store that it was made with.
func Of(ctx context.Context, path string, s store.Store) (*Key, error) {
	former := path + ".former"
	_, err := s.Get(ctx, bound)
	if errors.Is(err, store.ErrNotFound) {
		if err = os.Rename(path, former); err == nil || errors.Is(err, fs.ErrNotExist) {
			err = atomicfile.File(path, Secret(), 0o600)
		}
		if err != nil {
			err = fmt.Errorf("sealing key: %w", err)
		}
	}
	if err != nil {
		return nil, err
	}
	k, err := Load(path)
	if err != nil {
		return nil, err
	}
	if err = k.Bind(ctx, s); !errors.Is(err, errOther) {
		return k, err
	}
	if secret, failed := secretfile.ReadFile(former); failed == nil {
		if f, failed := New(secret); failed == nil && f.Bind(ctx, s) == nil {
			return f, atomicfile.File(path, secret, 0o600)
		}
	}
	return nil, err
}

var errOther = errors.New("the sealing key is not the one that this store was made with: restore that one, or remove the store to begin anew")

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
			return errOther
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
	return k.aeads[0].Seal(nil, nil, value, []byte(place))
}

// Open decrypts what Seal made for the same place.
func (k *Key) Open(place string, sealed []byte) ([]byte, error) {
	v, _, err := k.open(place, sealed)
	return v, err
}

// open also returns which of the secrets opened it, 0 for the newest.
func (k *Key) open(place string, sealed []byte) ([]byte, int, error) {
	for i, aead := range k.aeads {
		if v, err := aead.Open(nil, nil, sealed, []byte(place)); err == nil {
			return v, i, nil
		}
	}
	return nil, 0, fmt.Errorf("%s: %w: the key file or the store was replaced", place, ErrUnreadable)
}

// Reseal is what Seal makes now of a value that an older secret sealed, and whether it was
// one.
func (k *Key) Reseal(place string, sealed []byte) ([]byte, bool, error) {
	v, by, err := k.open(place, sealed)
	if err != nil || by == 0 {
		return sealed, false, err
	}
	return k.Seal(place, v), true, nil
}

// Derive makes n secret bytes for a purpose. The same purpose gives the same bytes
// for as long as the key file lives, whatever seals.
func (k *Key) Derive(purpose string, n int) []byte {
	b, err := hkdf.Key(sha256.New, []byte(k.root), nil, purpose, n)
	if err != nil {
		panic(err) // n is a constant of the caller, far below HKDF's limit
	}
	return b
}
