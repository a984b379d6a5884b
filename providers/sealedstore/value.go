package sealedstore

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/florete/florete/providers/store"
)

// Load decrypts the value of a key in a store, and decodes its JSON into v. It returns the revision
// at which the key was last changed. If the key is absent, Load leaves v unchanged and returns zero.
func (k *Key) Load(ctx context.Context, s store.Reading, at string, v any) (modified int64, err error) {
	e, err := store.Find(ctx, s, at)
	if err == nil && e.Modified != 0 {
		err = k.Decode(e, v)
	}
	return e.Modified, err
}

// Decode decrypts the value of an entry, and decodes its JSON into v.
func (k *Key) Decode(e store.Entry, v any) error {
	plain, err := k.Open(e.Key, e.Value)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(plain, v); err != nil {
		return fmt.Errorf("%s: %w", e.Key, err)
	}
	return nil
}

// Put returns the operation that stores the JSON of v under a key, encrypted.
func (k *Key) Put(at string, v any) (store.Op, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return store.Op{}, fmt.Errorf("%s: %w", at, err)
	}
	return store.Put(at, k.Seal(at, plain)), nil
}
