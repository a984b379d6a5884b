package sealedstore

import (
	"cmp"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/providers/store"
)

const (
	keyLife = 24 * time.Hour

	// AnnouncedFor is the time for which keys of tokens are published before they sign, so that
	// everybody who verifies tokens has the key by then. Hosts read the keys at least every ten
	// minutes. Other verifiers read the pages at least every hour.
	AnnouncedFor = 2 * time.Hour
)

// SigningKeys manages the keys with which providers sign tokens or certificates. The keys are
// stored encrypted in a state store, so all hosts that share the store sign with the same keys. By
// default, a new key is created each day. It is published before it signs, so that others know it
// in time, and stays published until its last signature has expired. If the policy has a higher
// generation, a new key is created and signs at once, and all other keys end.
type SigningKeys struct {
	Store     store.Store
	Seal      *Key
	At        string                  // key in the store that contains the signing keys
	Algorithm jose.SignatureAlgorithm // ES256 or EdDSA

	// Lingers is the time for which a key stays published after its last signature. It is the
	// lifetime of tokens, plus some time for differences between clocks.
	Lingers time.Duration

	// Announced is the time for which a key is published before it signs. If it is zero, AnnouncedFor
	// is used.
	Announced time.Duration

	// Life is the time for which a key signs before the next key is made. If it is zero, a day is
	// used.
	Life time.Duration
}

// SigningKey is a key that signs tokens. It signs from the time Signs until the time of the next
// key in its ring.
type SigningKey struct {
	ID         string `json:"id"` // RFC 7638 thumbprint
	Generation int    `json:"generation"`
	Signs      int64  `json:"signs"` // time from which the key signs, in Unix seconds
	Private    []byte `json:"private"`
}

// SigningRing contains the past, current and future signing keys, in the order in which they sign.
type SigningRing []SigningKey

// SigningChange contains conditions and operations for the transaction that stores a changed ring
// of signing keys. If the ring has not changed, both lists are empty.
type SigningChange struct {
	If   []store.Cond
	Then []store.Op
}

// Read returns the signing keys in the store, and the revision of the store at which they last
// changed. If there are none, it returns nil and zero.
func (k SigningKeys) Read(ctx context.Context) (r SigningRing, revision int64, err error) {
	revision, err = k.Seal.Load(ctx, k.Store, k.At, &r)
	return r, revision, err
}

// Due returns the signing keys for the time now, of the given generation or a higher one. It may
// create new keys. The caller must commit the returned change, unless it is empty, before it uses
// the keys.
func (k SigningKeys) Due(ctx context.Context, now time.Time, generation int) (SigningRing, SigningChange, error) {
	r, revision, err := k.Read(ctx)
	if err != nil {
		return nil, SigningChange{}, err
	}
	next, changed, err := k.next(r, now, generation)
	if err != nil || !changed {
		return next, SigningChange{}, err
	}
	op, err := k.Seal.Put(k.At, next)
	return next, SigningChange{If: []store.Cond{{Key: k.At, Modified: revision}}, Then: []store.Op{op}}, err
}

// Published returns the signing keys that others need at the time now in order to verify
// signatures. It does not store new keys.
func (k SigningKeys) Published(ctx context.Context, now time.Time, generation int) (SigningRing, error) {
	r, _, err := k.Read(ctx)
	if err == nil {
		r, _, err = k.next(r, now, generation)
	}
	return r, err
}

// Keep creates and stores the signing keys that are due at the time now. If another host has done
// so first, Keep returns nil.
func (k SigningKeys) Keep(ctx context.Context, now time.Time, generation int) error {
	_, c, err := k.Due(ctx, now, generation)
	if err != nil || c.Then == nil {
		return err
	}
	_, err = k.Store.Commit(ctx, store.Txn{If: c.If, Then: c.Then})
	if errors.Is(err, store.ErrConflict) {
		return nil
	}
	return err
}

// next returns the ring that is due at a time, and reports whether it differs from r. A key signs
// until the next key begins to sign. A key of a lower generation does not sign.
func (k SigningKeys) next(r SigningRing, now time.Time, generation int) (next SigningRing, changed bool, err error) {
	for i, key := range r {
		over := i+1 < len(r) && now.After(r[i+1].Begins().Add(k.Lingers))
		if !over && key.Generation >= generation {
			next = append(next, key)
		}
	}
	signs := now.Add(cmp.Or(k.Announced, AnnouncedFor))
	switch {
	case len(next) == 0:
		signs = now
	case now.Before(next[len(next)-1].Begins().Add(cmp.Or(k.Life, keyLife))):
		return next, len(next) != len(r), nil
	default:
		generation = max(generation, next[len(next)-1].Generation)
	}
	key, err := newKey(k.Algorithm, generation, signs)
	return append(next, key), true, err
}

// Signer returns the key that signs tokens at the time now.
func (r SigningRing) Signer(now time.Time) SigningKey {
	signer := r[0] // also where the clock went back
	for _, k := range r {
		if !k.Begins().After(now) {
			signer = k
		}
	}
	return signer
}

// JWKS returns the public keys as a JWK Set (RFC 7517) in JSON. Others use it to verify tokens.
func (r SigningRing) JWKS() []byte {
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	for _, k := range r {
		private, algorithm, err := k.private()
		if err != nil {
			continue // it signs nothing either
		}
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: private.Public(), KeyID: k.ID, Algorithm: string(algorithm)})
	}
	return strictjson.Encode(set)
}

func newKey(algorithm jose.SignatureAlgorithm, generation int, signs time.Time) (SigningKey, error) {
	private, err := generate(algorithm)
	if err != nil {
		return SigningKey{}, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return SigningKey{}, err
	}
	print, err := (&jose.JSONWebKey{Key: private.Public()}).Thumbprint(crypto.SHA256)
	return SigningKey{base64.RawURLEncoding.EncodeToString(print), generation, signs.Unix(), der}, err
}

func generate(algorithm jose.SignatureAlgorithm) (crypto.Signer, error) {
	if algorithm == jose.EdDSA {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		return private, err
	}
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

// Begins returns the time at which the key begins to sign.
func (k SigningKey) Begins() time.Time { return time.Unix(k.Signs, 0) }

// Signer returns a signer for tokens. The header "typ" of the tokens is the given type, such as
// "JWT".
func (k SigningKey) Signer(typ jose.ContentType) (jose.Signer, error) {
	private, algorithm, err := k.private()
	if err != nil {
		return nil, err
	}
	return jose.NewSigner(
		jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: private, KeyID: k.ID}},
		(&jose.SignerOptions{}).WithType(typ))
}

// Open returns the private key.
func (k SigningKey) Open() (crypto.Signer, error) {
	private, _, err := k.private()
	return private, err
}

func (k SigningKey) private() (crypto.Signer, jose.SignatureAlgorithm, error) {
	key, err := x509.ParsePKCS8PrivateKey(k.Private)
	if err != nil {
		return nil, "", fmt.Errorf("signing key %s: %w", k.ID, err)
	}
	switch private := key.(type) {
	case *ecdsa.PrivateKey:
		return private, jose.ES256, nil
	case ed25519.PrivateKey:
		return private, jose.EdDSA, nil
	}
	return nil, "", fmt.Errorf("signing key %s: %T, want an ECDSA or Ed25519 key", k.ID, key)
}
