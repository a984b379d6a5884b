// Package keyring keeps the sealing keys of a kind of provider in the store that its replicas
// share, sealed with age to the SSH host keys of the hosts that the flake names as replicas.
// Nobody carries a key: whoever is first makes it, any replica lets a new one in, and one that
// the flake drops is out with the next rotation.
//
// The ring is one key of the store:
//
//	seal/ring  {"id": …, "made": …, "replicas": {ID: SSH host key}, "sealed": age file of the secrets}
package keyring

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

	"github.com/florete/florete"
	"github.com/florete/florete/providers/seal"
	"github.com/florete/florete/providers/store"
)

// At is the key of the ring.
const At = "seal/ring"

// Ring is the keyring as it lies in the store.
type Ring struct {
	ID       string                `json:"id"`       // another with each rotation
	Made     time.Time             `json:"made"`     // of the newest secret
	Replicas map[florete.ID]string `json:"replicas"` // that can open it, and the SSH host key of each
	Sealed   []byte                `json:"sealed"`

	revision int64
}

// Keys are the secrets of a ring, opened.
type Keys struct {
	ID      string   `json:"id"`      // of the ring
	Secrets [][]byte `json:"secrets"` // as for seal.New
}

// Key is the sealing key.
func (k Keys) Key() (*seal.Key, error) { return seal.New(k.Secrets...) }

// Read reads the ring of a store. The error is store.ErrNotFound where nobody made one yet.
func Read(ctx context.Context, s store.Store) (r Ring, err error) {
	e, err := s.Get(ctx, At)
	if err != nil {
		return r, err
	}
	if err := florete.Decode(e.Value, &r); err != nil {
		return r, fmt.Errorf("%s: %w", At, err)
	}
	r.revision = e.Modified
	return r, nil
}

// Make makes the ring of a secret where there is none, with what is done in the same
// transaction; store.ErrConflict is that there is one now.
func Make(ctx context.Context, s store.Store, replicas []florete.Device, secret []byte, then ...store.Op) (Keys, error) {
	return Ring{}.write(ctx, s, Keys{Secrets: [][]byte{secret}}, hostKeys(replicas), true, then...)
}

// Open opens the ring with the SSH host key of a replica, a PEM file.
func (r Ring) Open(hostKey []byte) (k Keys, err error) {
	identity, err := agessh.ParseIdentity(hostKey)
	if err != nil {
		return k, fmt.Errorf("SSH host key: %w", err)
	}
	plain, err := age.Decrypt(bytes.NewReader(r.Sealed), identity)
	if err != nil {
		return k, fmt.Errorf("%s: does not open with this SSH host key: another replica lets this host in: %w", At, err)
	}
	b, err := io.ReadAll(plain)
	if err != nil {
		return k, fmt.Errorf("%s: %w", At, err)
	}
	if err := florete.Decode(b, &k); err != nil {
		return k, fmt.Errorf("%s: %w", At, err)
	}
	return k, nil
}

// Lacks is whether a replica cannot open the ring, by what the policy has of it.
func (r Ring) Lacks(replicas []florete.Device) bool {
	for _, d := range replicas {
		if r.Replicas[d.ID] != d.SSHHostKey {
			return true
		}
	}
	return false
}

// Admit lets replicas in besides those that can open the ring.
func (r Ring) Admit(ctx context.Context, s store.Store, k Keys, replicas []florete.Device) error {
	to := maps.Clone(r.Replicas)
	maps.Copy(to, hostKeys(replicas))
	_, err := r.write(ctx, s, k, to, false)
	return err
}

// Rotate makes a new secret, which none but replicas can open. The one before it still opens
// what it sealed, until the rotation after this, and the first is what secrets are derived from.
func (r Ring) Rotate(ctx context.Context, s store.Store, k Keys, replicas []florete.Device) (Keys, error) {
	if k.ID != r.ID {
		return k, errors.New("the sealing key was rotated meanwhile")
	}
	secrets := [][]byte{seal.Secret(), k.Secrets[0]}
	if last := len(k.Secrets) - 1; last > 0 {
		secrets = append(secrets, k.Secrets[last])
	}
	return r.write(ctx, s, Keys{Secrets: secrets}, hostKeys(replicas), true)
}

// write puts the ring in place of the one that was read.
func (r Ring) write(ctx context.Context, s store.Store, k Keys, to map[florete.ID]string, anew bool, then ...store.Op) (Keys, error) {
	if anew {
		k.ID = rand.Text()
		r.ID, r.Made = k.ID, time.Now().UTC()
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
		return k, fmt.Errorf("%s: %w", At, err)
	}
	if _, err := w.Write(plain); err != nil {
		return k, err
	}
	if err := w.Close(); err != nil {
		return k, err
	}
	r.Replicas, r.Sealed = to, sealed.Bytes()
	value, err := json.Marshal(r)
	if err != nil {
		return k, err
	}
	_, err = s.Commit(ctx, store.Txn{If: []store.Cond{{Key: At, Modified: r.revision}}, Then: append(then, store.Put(At, value))})
	return k, err
}

func hostKeys(replicas []florete.Device) map[florete.ID]string {
	all := map[florete.ID]string{}
	for _, d := range replicas {
		all[d.ID] = d.SSHHostKey
	}
	return all
}
