// Package sealedstore keeps a provider's secrets unreadable in its state store. Values are
// encrypted with AES-256-GCM, and the provider's own secrets are derived with HKDF (RFC 5869). The
// key for both is in a file beside the store, never in the store.
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

// ErrUnreadable is the error of a sealed value that no secret of the sealing key can open.
var ErrUnreadable = errors.New("does not open with this sealing key")

// Key is a sealing key, which encrypts the secrets in a provider's state store with AES-GCM. Each
// provider host has its own, or all hosts that share a store have the same. Several goroutines may
// use it at the same time.
type Key struct {
	root  string        // that secrets are derived from
	aeads []cipher.AEAD // the newest first, which seals
}

// New returns a Key that consists of one or more secrets of 32 bytes, the newest first. The newest
// secret encrypts values, and each of them can decrypt values. Derive uses the last secret.
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

// Secret returns 32 random bytes for New.
func Secret() []byte {
	secret := make([]byte, size)
	rand.Read(secret)
	return secret
}

// Load reads the sealing key from a file. If the file does not exist, Load generates a key and
// creates the file.
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

// Of returns the sealing key that belongs to a store. The key is in the file at path.
//
// If the store is new, Of generates a new key, and renames a file that exists already to
// path.former, so that secrets derived for a lost store do not become valid again. If the store
// belongs to the key in path.former, Of moves that key back to path. If it belongs to neither key,
// Of returns an error.
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

// bound is the key of the value that ties a store to its sealing key.
const bound = "seal/bound"

// Bind records in a store that this key belongs to it, when they are first used together. If the
// store already belongs to another key, Bind returns an error. With the wrong key, values could not
// be decrypted, and derived secrets would differ from those that hosts have.
func (k *Key) Bind(ctx context.Context, s store.Store) error {
	e, err := store.Find(ctx, s, bound)
	if err != nil {
		return err
	}
	if e.Modified != 0 {
		if _, err := k.Open(bound, e.Value); err != nil {
			return errOther
		}
		return nil
	}
	_, err = s.Commit(ctx, store.Txn{If: []store.Cond{{Key: bound}}, Then: []store.Op{store.Put(bound, k.Seal(bound, nil))}})
	return err
}

// Seal encrypts a value for a place, which is usually the value's key in the store. Open decrypts
// it only if it is called with the same place: Open(place, Seal(place, v)) == v.
func (k *Key) Seal(place string, value []byte) []byte {
	return k.aeads[0].Seal(nil, nil, value, []byte(place))
}

// Open decrypts a value that Seal encrypted for the same place.
func (k *Key) Open(place string, sealed []byte) ([]byte, error) {
	v, _, err := k.open(place, sealed)
	return v, err
}

// open is like Open, but also returns the index of the secret that opened the value. The newest
// secret has the index 0.
func (k *Key) open(place string, sealed []byte) ([]byte, int, error) {
	for i, aead := range k.aeads {
		if v, err := aead.Open(nil, nil, sealed, []byte(place)); err == nil {
			return v, i, nil
		}
	}
	return nil, 0, fmt.Errorf("%s: %w: the key file or the store was replaced", place, ErrUnreadable)
}

// Reseal encrypts a sealed value again, with the newest secret, if an older secret encrypted it.
// Otherwise it returns the value unchanged, and false. If no secret can decrypt the value, the
// error is ErrUnreadable.
func (k *Key) Reseal(place string, sealed []byte) ([]byte, bool, error) {
	v, by, err := k.open(place, sealed)
	if err != nil || by == 0 {
		return sealed, false, err
	}
	return k.Seal(place, v), true, nil
}

// Derive computes n secret bytes for a purpose (HKDF, RFC 5869). The same key and purpose always
// give the same bytes, also after a rotation of the key, so the bytes need not be stored.
func (k *Key) Derive(purpose string, n int) []byte {
	b, err := hkdf.Key(sha256.New, []byte(k.root), nil, purpose, n)
	if err != nil {
		panic(err) // n is a constant of the caller, far below HKDF's limit
	}
	return b
}
