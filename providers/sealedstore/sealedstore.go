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

// Key is a sealing key, which encrypts a provider's secrets with AES-GCM. One provider host has it,
// or all replicas that share a store. Several goroutines may use it at the same time.
type Key struct {
	root  string        // that secrets are derived from
	aeads []cipher.AEAD // the newest first, which seals
}

// New returns a Key that consists of one or more secrets of 32 bytes, the newest first. The newest
// secret seals values, and every secret opens them. Derive uses the last secret.
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

// Load reads the sealing key from a file. If the file does not exist, Load creates it with a new
// key.
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

// Of returns the sealing key of a store, which is in the file at path. If the store is new, Of
// creates the file with a new key, and renames an existing file to path.former. Secrets that were
// derived for a lost state therefore do not become valid again. If the store belongs to the key in
// path.former, Of restores that file. If it belongs to neither key, Of returns an error.
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

// Bind ties the key to a store when they are first used together. If the store is already tied to
// another key, Bind returns an error: with the wrong key, values cannot be opened, and derived
// secrets differ from those that hosts have.
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

// Seal encrypts a value for a place, usually its key in the store. Only Open with the same place
// decrypts it: Open(place, Seal(place, v)) == v.
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

// Reseal encrypts a sealed value with the newest secret if an older secret had sealed it. Otherwise
// it returns the value unchanged and false. If no secret opens the value, the error is
// ErrUnreadable.
func (k *Key) Reseal(place string, sealed []byte) ([]byte, bool, error) {
	v, by, err := k.open(place, sealed)
	if err != nil || by == 0 {
		return sealed, false, err
	}
	return k.Seal(place, v), true, nil
}

// Derive returns n secret bytes for a purpose (HKDF, RFC 5869). The same key and purpose always
// give the same bytes, also after a rotation of the key.
func (k *Key) Derive(purpose string, n int) []byte {
	b, err := hkdf.Key(sha256.New, []byte(k.root), nil, purpose, n)
	if err != nil {
		panic(err) // n is a constant of the caller, far below HKDF's limit
	}
	return b
}
