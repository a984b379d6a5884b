package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/florete/florete/providers/store"
)

// batch bounds how many revisions a watch reads at once.
const batch = 100

// others is how often a watch looks for what other processes committed.
const others = time.Second

func (s *Store) Watch(ctx context.Context, prefix string, after int64) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		at := after
		for ctx.Err() == nil {
			next := s.next()
			events, more, err := s.changes(ctx, prefix, &at)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				yield(store.Event{}, fmt.Errorf("watch %q: %w", prefix, err))
				return
			}
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
			}
			if more {
				continue
			}
			select {
			case <-next:
			case <-time.After(others):
			case <-ctx.Done():
			case <-s.ctx.Done():
				yield(store.Event{}, errClosed)
				return
			}
		}
	}
}

// changes reads what comes after a revision, which it moves, and whether there is more. Mostly
// nothing comes, and that must cost nothing: all that happens in a store wakes each of its watches.
func (s *Store) changes(ctx context.Context, prefix string, at *int64) (events []store.Event, more bool, err error) {
	var newest int64
	if err := s.newest.QueryRowContext(ctx).Scan(&newest); err != nil || newest <= *at {
		return nil, false, err
	}
	tx, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, false, err
	}
	defer tx.Rollback()
	var compacted int64
	err = tx.QueryRowContext(ctx, "SELECT (SELECT value FROM meta WHERE name = 'revision'), (SELECT value FROM meta WHERE name = 'compacted')").
		Scan(&newest, &compacted)
	if err != nil {
		return nil, false, err
	}
	if *at < compacted {
		return nil, false, fmt.Errorf("revision %d, kept from %d: %w", *at, compacted, store.ErrCompacted)
	}
	rows, err := tx.QueryContext(ctx, "SELECT revision, keys FROM changes WHERE revision > ? ORDER BY revision LIMIT ?", *at, batch)
	if err != nil {
		return nil, false, err
	}
	all, err := collect(rows, func(r *sql.Rows) (c changed, err error) { return c, r.Scan(&c.revision, &c.touched) })
	if err != nil {
		return nil, false, err
	}
	for _, c := range all {
		for key, deleted := range c.touched.keys {
			if !strings.HasPrefix(key, prefix) {
				continue
			}
			e := store.Event{Entry: store.Entry{Key: key, Modified: c.revision}, Deleted: deleted}
			if !deleted {
				err = tx.QueryRowContext(ctx, "SELECT value, created FROM kv WHERE key = ? AND modified = ?", []byte(key), c.revision).Scan(&e.Value, &e.Created)
			}
			switch {
			case err == nil:
				events = append(events, e)
			case !errors.Is(err, sql.ErrNoRows): // else a later change has it
				return nil, false, err
			}
		}
		newest = max(newest, c.revision)
	}
	if more = len(all) == batch; more {
		newest = all[batch-1].revision
	}
	*at = newest
	return events, more, nil
}

// Compact forgets the changes up to a revision.
func (s *Store) Compact(ctx context.Context, revision int64) error {
	_, err := s.update(ctx, func(t *tx) error { return t.record(min(revision, t.revision)) })
	return err
}
