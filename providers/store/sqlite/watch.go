package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"time"

	"github.com/florete/florete/providers/store"
)

// batch is the largest number of changes that a watch reads at once.
const batch = 1000

// others is the interval at which a store looks for changes that other processes have committed.
const others = time.Second

// cursor is the last change that a watch has seen.
type cursor struct{ revision, step int64 }

func (s *Store) Watch(ctx context.Context, prefix string, after int64) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		at := cursor{revision: after + 1}
		for ctx.Err() == nil {
			next := s.next()
			events, err := s.changes(ctx, prefix, &at)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				yield(store.Event{}, fmt.Errorf("watch %q: %w", prefix, s.damaged(err)))
				return
			}
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
			}
			if len(events) == batch {
				continue
			}
			select {
			case <-next:
			case <-ctx.Done():
			case <-s.ctx.Done():
				yield(store.Event{}, errClosed)
				return
			}
		}
	}
}

// follow wakes all watches when other processes have committed changes, until the store is closed.
// One query for all watches keeps an idle process idle.
func (s *Store) follow() {
	for seen := int64(0); ; {
		select {
		case <-time.After(others):
		case <-s.ctx.Done():
			return
		}
		var newest int64
		if err := s.newest.QueryRowContext(s.ctx).Scan(&newest); err != nil || newest != seen {
			s.announce()
		}
		seen = newest
	}
}

// changes reads the changes after the cursor, and advances the cursor. Usually there are none. This
// case must be fast, because each change of a store wakes all its watches.
func (s *Store) changes(ctx context.Context, prefix string, at *cursor) ([]store.Event, error) {
	var newest int64
	if err := s.newest.QueryRowContext(ctx).Scan(&newest); err != nil || newest < at.revision {
		return nil, err
	}
	tx, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	var revision, compacted int64
	err = tx.QueryRowContext(ctx, "SELECT (SELECT value FROM meta WHERE name = 'revision'), (SELECT value FROM meta WHERE name = 'compacted')").
		Scan(&revision, &compacted)
	if err != nil {
		return nil, err
	}
	if at.revision <= compacted {
		return nil, fmt.Errorf("revision %d, kept from %d: %w", at.revision-1, compacted, store.ErrCompacted)
	}
	rows, err := tx.QueryContext(ctx, `SELECT revision, step, key, value, value IS NULL, created FROM events
		WHERE (revision, step) > (?, ?) AND key >= ? AND (? IS NULL OR key < ?) ORDER BY revision, step LIMIT ?`,
		at.revision, at.step, []byte(prefix), end(prefix), end(prefix), batch)
	if err != nil {
		return nil, err
	}
	last := *at
	events, err := collect(rows, func(r *sql.Rows) (e store.Event, err error) {
		err = r.Scan(&last.revision, &last.step, &e.Key, &e.Value, &e.Deleted, &e.Created)
		e.Modified = last.revision
		return e, err
	})
	if err != nil {
		return nil, err
	}
	if len(events) < batch && revision >= last.revision {
		last = cursor{revision: revision + 1}
	}
	*at = last
	return events, nil
}

// Compact deletes the history of changes up to the given revision. A watch that begins at an
// earlier revision then yields store.ErrCompacted.
func (s *Store) Compact(ctx context.Context, revision int64) error {
	_, err := s.update(ctx, func(t *tx) error { return t.record(min(revision, t.revision)) })
	return err
}
