package store

import (
	"context"
	"errors"
	"fmt"
)

// Attempts is the largest number of times that a change is tried if the state changes meanwhile.
const Attempts = 20

// Retry calls a function, and calls it again as long as its error is ErrConflict, at most Attempts
// times in total. It returns the last error of the function.
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

// Update changes the store depending on the entry at a key. It calls the function change with that
// entry, and commits the transaction that the function returns. If the key is absent, the revisions
// of the entry are zero. If the key has changed meanwhile, Update calls the function again. If the
// function returns no operations, nothing is committed.
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
