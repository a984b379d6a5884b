package dexstore

import (
	"context"
	"errors"

	"github.com/dexidp/dex/storage"
)

const keys table[storage.Keys] = "keys"

// GetKeys returns the keys that sign ID tokens. The error is storage.ErrNotFound before the first
// rotation.
func (s *Store) GetKeys(ctx context.Context) (storage.Keys, error) { return keys.get(ctx, s) }

// UpdateKeys calls change with the keys that sign ID tokens, and stores the result. If there are no
// keys yet, it creates the record. It does not retry after a conflict, because another caller has
// then already rotated the keys.
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
