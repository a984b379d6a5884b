package store

import (
	"context"
	"errors"
	"fmt"
)

// Attempts is the largest number of times that a change is tried if the state changes meanwhile.
const Attempts = 20

// Retry calls act again as long as it returns ErrConflict, but at most Attempts times in all. It
// returns the result of the last call. If all calls conflict, the error wraps ErrConflict.
func Retry(ctx context.Context, act func() error) error {
	for n := 1; ; n++ {
		err := act()
		switch {
		case !errors.Is(err, ErrConflict):
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case n == Attempts:
			return fmt.Errorf("decided %d times, try again: %w", n, err)
		}
	}
}

// Update changes the entry at a key. It calls change with the current entry, and commits the
// returned transaction unless the key has changed meanwhile. If it has, Update calls change again
// with the new entry, as often as Retry does. For an absent key, the entry has only its Key set. If
// change returns an error or no operations, nothing is committed.
func Update(ctx context.Context, s Store, key string, change func(Entry) (Txn, error)) error {
	return Retry(ctx, func() error {
		e, err := Find(ctx, s, key)
		if err != nil {
			return err
		}
		txn, err := change(e)
		if err != nil || len(txn.Then) == 0 {
			return err
		}
		txn.If = append(txn.If, Cond{Key: key, Modified: e.Modified})
		_, err = s.Commit(ctx, txn)
		return err
	})
}
