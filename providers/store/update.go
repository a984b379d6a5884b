package store

import (
	"context"
	"errors"
	"fmt"
)

// Attempts is the maximum number of times that a change is tried if the state changes in the
// meantime.
const Attempts = 20

// Retry calls act, and calls it again as long as its error is ErrConflict, at most Attempts times.
// It returns the last error of act.
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

// Update changes the store depending on the entry at a key. It calls change with that entry, whose
// revisions are zero if the key is absent, and commits the transaction that change returns. If the
// key has changed in the meantime, Update calls change again. If change returns no operations,
// nothing is committed.
func Update(ctx context.Context, s Store, key string, change func(Entry) (Txn, error)) error {
	return Retry(ctx, func() error {
		e, err := s.Get(ctx, key)
		if errors.Is(err, ErrNotFound) {
			e, err = Entry{Key: key}, nil
		}
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
