package sealedstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/florete/florete/providers/store"
)

// resealPage is the number of values that are in memory at once.
const resealPage = 100

// Walk encrypts the values below a prefix again. It passes each value to the function reseal, for
// example Key.Reseal, and stores the returned value if the second result is true. A value that
// changes meanwhile is left unchanged. A value that no secret can decrypt is skipped, and Walk
// returns ErrUnreadable at the end. Any other error ends Walk at once.
func Walk(ctx context.Context, s store.Store, prefix string, reseal func(key string, value []byte) ([]byte, bool, error)) error {
	var unreadable error
	for e, err := range store.All(ctx, s, prefix, "", resealPage) {
		if err != nil {
			return err
		}
		value, changed, err := reseal(e.Key, e.Value)
		if errors.Is(err, ErrUnreadable) {
			unreadable = fmt.Errorf("seal anew: %w", err)
			continue
		}
		if err != nil {
			return fmt.Errorf("seal anew: %w", err)
		}
		if !changed {
			continue
		}
		_, err = s.Commit(ctx, store.Txn{If: []store.Cond{{Key: e.Key, Modified: e.Modified}}, Then: []store.Op{store.Put(e.Key, value)}})
		if err != nil && !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return unreadable
}

// Rebind takes the value that Bind has stored, and encrypts it again with the newest secret of the
// key.
func (k *Key) Rebind(ctx context.Context, s store.Store) error {
	return Walk(ctx, s, bound, k.Reseal)
}
