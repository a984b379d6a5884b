// Package dexstore keeps the state of a Dex server (github.com/dexidp/dex) in a store.Store, so
// that the embedded OpenID Connect provider needs no database of its own.
//
// A record is stored under the key oidc/dex/<type>/<hash>, and is sealed for that key. The hash is
// made from Dex's ID of the record, because authorization codes are such IDs and must not be
// readable in the store.
package dexstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/dexidp/dex/storage"

	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/store"
)

// Store lets Dex keep its data in a state store: it implements Dex's interface storage.Storage. It
// returns the errors storage.ErrNotFound and storage.ErrAlreadyExists unwrapped, because Dex
// compares them with ==. Closing a Store does not close the state store.
type Store struct {
	db  store.Store
	key *sealedstore.Key
}

var _ storage.Storage = (*Store)(nil)

// New returns a Store that keeps its records in the state store db, encrypted with the given key.
func New(db store.Store, key *sealedstore.Key) *Store { return &Store{db: db, key: key} }

// Close does nothing, because the state store belongs to the caller.
func (s *Store) Close() error { return nil }

// table is one type of record. Its value is the name of the type in the keys of records.
type table[T any] string

func (t table[T]) prefix() string { return "oidc/dex/" + string(t) + "/" }

// key returns the key of the record with the given IDs. Different IDs have different keys.
func (t table[T]) key(id ...string) string {
	h := sha256.New()
	for _, part := range id {
		h.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
	}
	return t.prefix() + hex.EncodeToString(h.Sum(nil))
}

func (t table[T]) decode(s *Store, e store.Entry) (v T, err error) {
	if err := s.key.Decode(e, &v); err != nil {
		return v, fmt.Errorf("dexstore: %w", err)
	}
	return v, nil
}

// put stores a record, if the key was last changed at the revision given by modified.
func (t table[T]) put(ctx context.Context, s *Store, key string, modified int64, v T) error {
	op, err := s.key.Put(key, v)
	if err != nil {
		return fmt.Errorf("dexstore: %w", err)
	}
	_, err = s.db.Commit(ctx, store.Txn{If: []store.Cond{{Key: key, Modified: modified}}, Then: []store.Op{op}})
	return err
}

func (t table[T]) create(ctx context.Context, s *Store, v T, id ...string) error {
	err := t.put(ctx, s, t.key(id...), 0, v)
	if errors.Is(err, store.ErrConflict) {
		return storage.ErrAlreadyExists
	}
	return err
}

func (t table[T]) entry(ctx context.Context, s *Store, id ...string) (store.Entry, error) {
	e, err := s.db.Get(ctx, t.key(id...))
	if errors.Is(err, store.ErrNotFound) {
		return e, storage.ErrNotFound
	}
	return e, err
}

func (t table[T]) get(ctx context.Context, s *Store, id ...string) (v T, err error) {
	e, err := t.entry(ctx, s, id...)
	if err != nil {
		return v, err
	}
	return t.decode(s, e)
}

func (t table[T]) list(ctx context.Context, s *Store) ([]T, error) {
	entries, _, err := s.db.List(ctx, t.prefix())
	if err != nil {
		return nil, err
	}
	all := make([]T, len(entries))
	for i, e := range entries {
		if all[i], err = t.decode(s, e); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// update replaces a record by the result of a function. If the record has changed meanwhile, the
// function is called again.
func (t table[T]) update(ctx context.Context, s *Store, change func(T) (T, error), id ...string) error {
	return store.Retry(ctx, func() error {
		e, err := t.entry(ctx, s, id...)
		if err != nil {
			return err
		}
		v, err := t.decode(s, e)
		if err != nil {
			return err
		}
		if v, err = change(v); err != nil {
			return err
		}
		return t.put(ctx, s, e.Key, e.Modified, v)
	})
}

// delete removes a record. If several callers remove the same record, one of them succeeds, and the
// others get storage.ErrNotFound.
func (t table[T]) delete(ctx context.Context, s *Store, id ...string) error {
	return store.Update(ctx, s.db, t.key(id...), func(e store.Entry) (txn store.Txn, err error) {
		if e.Modified == 0 {
			return txn, storage.ErrNotFound
		}
		return store.Txn{Then: []store.Op{store.Delete(e.Key)}}, nil
	})
}
