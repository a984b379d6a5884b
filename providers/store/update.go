package store

import (
	"context"
	"errors"
	"fmt"
)

// Attempts bounds how often a change is decided again because the state changed meanwhile.
const Attempts = 20

// Retry calls act until its error is not ErrConflict, at most Attempts times. It returns the last
// error of act.
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

// Update commits the transaction that change returns for the entry at a key, which is zero if the
// key is absent. The transaction requires that the key is unchanged; otherwise change is called
// again. If change returns no operations, nothing is committed.
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
