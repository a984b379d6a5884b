package sealedstore

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	"filippo.io/age"
	"filippo.io/age/agessh"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/providers/store"
)

// RingAt is the key under which the store contains the keyring.
const RingAt = "seal/ring"

// Ring is the keyring of a state store that several provider hosts share. These hosts, the
// replicas, encrypt the secrets in the store with common sealing keys. The keyring contains these
// keys, encrypted with age to the SSH host keys of the replicas. The first replica creates the
// keys, and each replica can give them to a new replica, so nobody has to copy keys between hosts.
// When the flake no longer names a replica, that host cannot read the keys of the next rotation.
//
//	seal/ring  {"id": …, "made": …, "serial": …, "replicas": {ID: SSH host key}, "sealed": age file of the secrets}
//
// Replicas receive a new policy one after the other. A replica with an older policy can neither
// admit replicas nor rotate keys, because it could admit a host that the flake no longer names.
type Ring struct {
	ID       string               `json:"id"`       // ID of the ring, which each rotation changes
	Made     time.Time            `json:"made"`     // time at which the newest secret was made
	Serial   int64                `json:"serial"`   // serial of the policy that names the replicas
	Replicas map[spiffe.ID]string `json:"replicas"` // replicas that can open the ring, with their SSH host keys
	Sealed   []byte               `json:"sealed"`

	revision int64
}

// RingReplicas contains the provider hosts that a policy names as replicas.
type RingReplicas struct {
	Replicas []document.Device
	Serial   int64 // serial of the policy
}

// RingKeys contains the decrypted secrets of a keyring.
type RingKeys struct {
	ID      string   `json:"id"`      // ID of the ring
	Secrets [][]byte `json:"secrets"` // the newest first, see sealedstore.New
}

// Key returns the sealing key that the keyring contains.
func (k RingKeys) Key() (*Key, error) { return New(k.Secrets...) }

// ReadRing reads the keyring of a store, which contains the keys that encrypt the values in the
// store. If the store has no keyring yet, the error is store.ErrNotFound.
func ReadRing(ctx context.Context, s store.Store) (r Ring, err error) {
	e, err := s.Get(ctx, RingAt)
	if err != nil {
		return r, err
	}
	if err := strictjson.Decode(e.Value, &r); err != nil {
		return r, fmt.Errorf("%s: %w", RingAt, err)
	}
	r.revision = e.Modified
	return r, nil
}

// MakeRing creates the keyring of a store with a first secret, and encrypts it so that the named
// replicas can open it. The further operations are applied in the same transaction. If the store
// already has a keyring, the error is store.ErrConflict.
func MakeRing(ctx context.Context, s store.Store, named RingReplicas, secret []byte, then ...store.Op) (RingKeys, error) {
	return Ring{}.write(ctx, s, RingKeys{Secrets: [][]byte{secret}}, named, true, then...)
}

// Open decrypts the keyring, given the private SSH host key of a replica in PEM. The replica must
// be one to which the keyring is encrypted.
func (r Ring) Open(hostKey []byte) (k RingKeys, err error) {
	identity, err := agessh.ParseIdentity(hostKey)
	if err != nil {
		return k, fmt.Errorf("SSH host key: %w", err)
	}
	plain, err := age.Decrypt(bytes.NewReader(r.Sealed), identity)
	if err != nil {
		return k, fmt.Errorf("%s: does not open with this SSH host key: another replica lets this host in: %w", RingAt, err)
	}
	b, err := io.ReadAll(plain)
	if err != nil {
		return k, fmt.Errorf("%s: %w", RingAt, err)
	}
	if err := strictjson.Decode(b, &k); err != nil {
		return k, fmt.Errorf("%s: %w", RingAt, err)
	}
	return k, nil
}

// Lacks reports whether one of the named replicas cannot open the keyring yet.
func (r Ring) Lacks(named RingReplicas) bool {
	for _, d := range named.Replicas {
		if r.Replicas[d.ID] != d.SSHHostKey {
			return true
		}
	}
	return false
}

// Admit lets more replicas open the keyring. The argument k is the result of Open for this keyring,
// and the last argument lists the replicas to add. If the stored keyring has changed since ReadRing
// returned it, the error is store.ErrConflict.
func (r Ring) Admit(ctx context.Context, s store.Store, k RingKeys, named RingReplicas) error {
	_, err := r.write(ctx, s, k, named, false)
	return err
}

// rest is the shortest time between two rotations. In this time all replicas adopt the secret of
// the first rotation. Otherwise a replica could seal values with a secret that the second rotation
// removes.
const rest = 15 * time.Second

// Rotate adds a new secret to the keyring, encrypts the keyring so that only the named replicas can
// open it, and returns all its secrets. The former secret can decrypt existing values only until
// the next rotation, so encrypt these values again before then. Derived secrets stay the same,
// because they come from the first secret. If the last rotation was too recent, or if the stored
// keyring has changed since ReadRing returned it, Rotate returns an error.
func (r Ring) Rotate(ctx context.Context, s store.Store, k RingKeys, named RingReplicas) (RingKeys, error) {
	if k.ID != r.ID {
		return k, errors.New("the sealing key was rotated meanwhile")
	}
	if age := time.Since(r.Made); len(k.Secrets) > 1 && age < rest {
		return k, fmt.Errorf("%s: rotated %s ago, want %s between two rotations: rotate again after that", RingAt, age.Round(time.Second), rest)
	}
	secrets := [][]byte{Secret(), k.Secrets[0]}
	if last := len(k.Secrets) - 1; last > 0 {
		secrets = append(secrets, k.Secrets[last])
	}
	return r.write(ctx, s, RingKeys{Secrets: secrets}, named, true)
}

// write replaces the keyring that was read. If anew is true, the secrets are encrypted to the named
// replicas alone.
func (r Ring) write(ctx context.Context, s store.Store, k RingKeys, named RingReplicas, anew bool, then ...store.Op) (RingKeys, error) {
	if named.Serial < r.Serial {
		return k, fmt.Errorf("%s: a replica keeps it by its policy of serial %d, the policy here has %d: deploy this provider", RingAt, r.Serial, named.Serial)
	}
	to := map[spiffe.ID]string{}
	if anew {
		k.ID = rand.Text()
		r.ID, r.Made = k.ID, time.Now().UTC()
	} else {
		maps.Copy(to, r.Replicas)
	}
	for _, d := range named.Replicas {
		to[d.ID] = d.SSHHostKey
	}
	var recipients []age.Recipient
	for id, key := range to {
		recipient, err := agessh.ParseRecipient(key)
		if err != nil {
			return k, fmt.Errorf("SSH host key of %s: %w: declare one of type ssh-ed25519 or ssh-rsa", id, err)
		}
		recipients = append(recipients, recipient)
	}
	plain, err := json.Marshal(k)
	if err != nil {
		return k, err
	}
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, recipients...)
	if err != nil {
		return k, fmt.Errorf("%s: %w", RingAt, err)
	}
	if _, err := w.Write(plain); err != nil {
		return k, err
	}
	if err := w.Close(); err != nil {
		return k, err
	}
	r.Serial, r.Replicas, r.Sealed = named.Serial, to, sealed.Bytes()
	value, err := json.Marshal(r)
	if err != nil {
		return k, err
	}
	_, err = s.Commit(ctx, store.Txn{If: []store.Cond{{Key: RingAt, Modified: r.revision}}, Then: append(then, store.Put(RingAt, value))})
	return k, err
}
