package dexstore

import (
	"context"
	"errors"

	"github.com/dexidp/dex/storage"
)

const keys table[storage.Keys] = "keys"

// GetKeys returns the keys that sign ID tokens. If no keys have been created yet, the error is
// storage.ErrNotFound.
func (s *Store) GetKeys(ctx context.Context) (storage.Keys, error) { return keys.get(ctx, s) }

// UpdateKeys calls change with the keys that sign ID tokens, and stores the keys that change
// returns. If there are no keys yet, change receives the zero value. If another caller changes the
// keys at the same time, UpdateKeys returns an error and does not retry, because that caller has
// rotated them.
func (s *Store) UpdateKeys(ctx context.Context, change func(storage.Keys) (storage.Keys, error)) error {
	e, err := keys.entry(ctx, s)
	var old storage.Keys
	switch {
	case err == nil:
		if old, err = keys.decode(s, e); err != nil {
			return err
		}
	case !errors.Is(err, storage.ErrNotFound):
		return err
	}
	changed, err := change(old)
	if err != nil {
		return err
	}
	return keys.put(ctx, s, keys.key(), e.Modified, changed)
}
