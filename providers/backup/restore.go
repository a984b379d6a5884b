package backup

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/florete/florete/providers/store"
)

// Restoring configures the restore of a backup into a state store.
type Restoring struct {
	Remembers func(key string) bool                          // reports whether a key is restored
	Restored  func(key string, value []byte) ([]byte, error) // converts a value before it is written; nil to write it unchanged
	If        []store.Cond                                   // conditions of each transaction
}

// Restore copies keys from a backup to a state store. Keys that the store already contains stay
// unchanged, because they are the same or newer. Restore returns how many keys it has copied, and
// how many stayed unchanged. If it is interrupted, run it again.
func (r Restoring) Restore(ctx context.Context, s store.Store, keys iter.Seq2[store.Entry, error]) (put, stay int, err error) {
	var batch []store.Op
	size := 0
	flush := func() error {
		n, err := r.put(ctx, s, batch)
		put, stay = put+n, stay+len(batch)-n
		batch, size = nil, 0
		return err
	}
	for e, err := range keys {
		if err != nil {
			return put, stay, err
		}
		if !r.Remembers(e.Key) {
			continue
		}
		if r.Restored != nil {
			if e.Value, err = r.Restored(e.Key, e.Value); err != nil {
				return put, stay, err
			}
		}
		if len(batch) == store.MaxOps || size+len(e.Value) > store.MaxBytes {
			if err := flush(); err != nil {
				return put, stay, err
			}
		}
		batch, size = append(batch, store.Put(e.Key, e.Value)), size+len(e.Value)
	}
	err = flush()
	return put, stay, err
}

// put commits the operations whose keys are absent from the store, and returns the number of these
// operations.
func (r Restoring) put(ctx context.Context, s store.Store, ops []store.Op) (int, error) {
	for len(ops) > 0 {
		conds := append([]store.Cond(nil), r.If...)
		for _, op := range ops {
			conds = append(conds, store.Cond{Key: op.Key})
		}
		_, err := s.Commit(ctx, store.Txn{If: conds, Then: ops})
		if !errors.Is(err, store.ErrConflict) {
			return len(ops), err
		}
		var absent []store.Op
		for _, op := range ops {
			_, err := s.Get(ctx, op.Key)
			if errors.Is(err, store.ErrNotFound) {
				absent = append(absent, op)
			} else if err != nil {
				return 0, err
			}
		}
		if len(absent) == len(ops) {
			return 0, fmt.Errorf("the state cannot be changed now: run it again: %w", err)
		}
		ops = absent
	}
	return 0, nil
}
