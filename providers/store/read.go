package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
)

// Find is like Get, but for an absent key it returns no error, and an Entry that has only its Key
// set.
func Find(ctx context.Context, s Reading, key string) (Entry, error) {
	e, err := s.Get(ctx, key)
	if errors.Is(err, ErrNotFound) {
		return Entry{Key: key}, nil
	}
	return e, err
}

// Load decodes the JSON value of a key into v, and returns the revision at which the key was last
// changed. If the key is absent, it leaves v unchanged and returns zero.
func Load(ctx context.Context, s Reading, key string, v any) (modified int64, err error) {
	e, err := Find(ctx, s, key)
	if err == nil && e.Modified != 0 {
		err = json.Unmarshal(e.Value, v)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", key, err)
	}
	return e.Modified, nil
}

// All yields the entries whose keys start with prefix and sort after the key after, in order. It
// keeps at most page entries in memory, so the entries may be of different revisions. If the store
// fails, All yields the error and ends.
func All(ctx context.Context, s Store, prefix, after string, page int) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for {
			entries, err := s.Page(ctx, prefix, after, page)
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for _, e := range entries {
				if after = e.Key; !yield(e, nil) {
					return
				}
			}
			if len(entries) < page {
				return
			}
		}
	}
}
