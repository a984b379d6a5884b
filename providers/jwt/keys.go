package jwt

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/florete/florete/providers/seal"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

const (
	keyLife = 24 * time.Hour

	// announced is how long a key is published before it signs: hosts have the keys of at most
	// ten minutes ago, verifiers of the pages those of an hour.
	announced = 2 * time.Hour

	// lingers is how long a key is published that signs no more: tokens live for five minutes,
	// and clocks differ.
	lingers = 15 * time.Minute
)

// keysAt is where the signing keys are, sealed.
const keysAt = "jwt/keys"

// keys are the signing keys in a store.
type keys struct {
	db  store.Store
	key *seal.Key
}

// signingKey is one of them.
type signingKey struct {
	ID         string `json:"id"` // RFC 7638 thumbprint
	Generation int    `json:"generation"`
	Signs      int64  `json:"signs"` // since when, Unix seconds
	Private    []byte `json:"private"`
}

// ring is all of them, in the order in which they sign.
type ring []signingKey

// read returns the ring, and the revision that wrote it.
func (k keys) read(ctx context.Context) (r ring, revision int64, err error) {
	e, err := k.db.Get(ctx, keysAt)
	if errors.Is(err, store.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	plain, err := k.key.Open(keysAt, e.Value)
	if err == nil {
		err = json.Unmarshal(plain, &r)
	}
	return r, e.Modified, err
}

// due is the ring that is due at a time, with the change that brings it about, if any.
func (k keys) due(ctx context.Context, now time.Time, generation int) (ring, server.Decision, error) {
	r, revision, err := k.read(ctx)
	if err != nil {
		return nil, server.Decision{}, err
	}
	next, changed, err := r.next(now, generation)
	if err != nil || !changed {
		return next, server.Decision{}, err
	}
	plain, err := json.Marshal(next)
	if err != nil {
		return nil, server.Decision{}, err
	}
	return next, server.Decision{
		If:   []store.Cond{{Key: keysAt, Modified: revision}},
		Then: []store.Op{store.Put(keysAt, k.key.Seal(keysAt, plain))},
	}, nil
}

// keep brings about what is due. That another replica was first is no error.
func (k keys) keep(ctx context.Context, now time.Time, generation int) error {
	_, d, err := k.due(ctx, now, generation)
	if err != nil || d.Then == nil {
		return err
	}
	_, err = k.db.Commit(ctx, store.Txn{If: d.If, Then: d.Then})
	if errors.Is(err, store.ErrConflict) {
		return nil
	}
	return err
}

// next is what the ring is to be at a time, and whether that is another: a key signs until
// the next one does, one of a lower generation nothing any more.
func (r ring) next(now time.Time, generation int) (next ring, changed bool, err error) {
	for i, k := range r {
		over := i+1 < len(r) && now.After(r[i+1].signs().Add(lingers))
		if !over && k.Generation >= generation {
			next = append(next, k)
		}
	}
	signs := now.Add(announced)
	switch {
	case len(next) == 0:
		signs = now
	case now.Before(next[len(next)-1].signs().Add(keyLife)):
		return next, len(next) != len(r), nil
	default:
		generation = max(generation, next[len(next)-1].Generation)
	}
	k, err := newKey(generation, signs)
	return append(next, k), true, err
}

// signer is the key that signs at a time.
func (r ring) signer(now time.Time) signingKey {
	signer := r[0] // also where the clock went back
	for _, k := range r {
		if !k.signs().After(now) {
			signer = k
		}
	}
	return signer
}

// jwks is the JWK Set (RFC 7517) of the public keys.
func (r ring) jwks() []byte {
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	for _, k := range r {
		private, err := k.private()
		if err != nil {
			continue // it signs nothing either
		}
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: private.Public(), KeyID: k.ID, Algorithm: string(jose.ES256)})
	}
	b, err := json.Marshal(set)
	if err != nil {
		panic(err) // keys of one kind
	}
	return b
}

func newKey(generation int, signs time.Time) (signingKey, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return signingKey{}, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return signingKey{}, err
	}
	print, err := (&jose.JSONWebKey{Key: private.Public()}).Thumbprint(crypto.SHA256)
	return signingKey{base64.RawURLEncoding.EncodeToString(print), generation, signs.Unix(), der}, err
}

func (k signingKey) signs() time.Time { return time.Unix(k.Signs, 0) }

func (k signingKey) private() (*ecdsa.PrivateKey, error) {
	key, err := x509.ParsePKCS8PrivateKey(k.Private)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", keysAt, err)
	}
	private, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s: %T, want an ECDSA key", keysAt, key)
	}
	return private, nil
}

// InForce is the newest signing key, so that each has an audit row.
func (i *Issuer) InForce(ctx context.Context) (server.Version, error) {
	r, _, err := i.keys.read(ctx)
	if err != nil || len(r) == 0 {
		return server.Version{}, err
	}
	k := r[len(r)-1]
	return server.Version{
		Name: "the key that signs JWT-SVIDs", Digest: k.ID,
		Detail: map[string]string{"generation": strconv.Itoa(k.Generation), "signs": k.signs().UTC().Format(time.RFC3339)},
	}, nil
}

// Reseal seals the keys anew.
func (i *Issuer) Reseal(ctx context.Context) error {
	return seal.Walk(ctx, i.Store, keysAt, i.Key.Reseal)
}
