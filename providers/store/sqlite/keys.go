package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/florete/florete/providers/store"
)

// live is a condition in SQL. It excludes keys whose lease has ended, but which the sweeper has not
// deleted yet.
const live = "(lease = 0 OR EXISTS (SELECT 1 FROM leases WHERE id = lease AND expires > ?))"

func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	e := store.Entry{Key: key}
	err := ctx.Err()
	if err == nil {
		err = s.get(&e)
	}
	if errors.Is(err, sql.ErrNoRows) {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Entry{}, fmt.Errorf("key %q: %w", key, s.damaged(err))
	}
	return e, nil
}

// get reads one key. It ignores contexts, because it takes less time than an interruption would.
func (s *Store) get(e *store.Entry) error {
	c, err := s.reader()
	if err != nil {
		return err
	}
	row, err := c.row("SELECT value, created, modified FROM kv WHERE key = ? AND "+live, []byte(e.Key), time.Now().UnixMilli())
	if err == nil {
		e.Value, _ = row[0].([]byte)
		e.Created, _ = row[1].(int64)
		e.Modified, _ = row[2].(int64)
	}
	return errors.Join(err, s.keepReader(c))
}

// reader returns a connection for reading one key. It is the idle connection that was used last.
func (s *Store) reader() (*conn, error) {
	s.mu.Lock()
	n := len(s.idle)
	if s.closed || n == 0 {
		defer s.mu.Unlock()
		if s.closed {
			return nil, errClosed
		}
		return connect(s.read, s.name)
	}
	c := s.idle[n-1]
	s.idle = s.idle[:n-1]
	s.mu.Unlock()
	return c, nil
}

func (s *Store) keepReader(c *conn) error {
	s.mu.Lock()
	keep := !s.closed && len(s.idle) < readers
	if keep {
		s.idle = append(s.idle, c)
	}
	s.mu.Unlock()
	if keep {
		return nil
	}
	return c.Close()
}

func (s *Store) List(ctx context.Context, prefix string) (_ []store.Entry, _ int64, err error) {
	defer func() { err = s.damaged(err) }()
	tx, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, 0, err
	}
	defer tx.Rollback()
	var revision int64
	if err := tx.StmtContext(ctx, s.newest).QueryRowContext(ctx).Scan(&revision); err != nil {
		return nil, 0, err
	}
	query, args := within([]byte(prefix), prefix)
	var rows *sql.Rows
	if query == bounded {
		rows, err = tx.StmtContext(ctx, s.list).QueryContext(ctx, args...)
	} else {
		rows, err = tx.QueryContext(ctx, query, args...)
	}
	if err != nil {
		return nil, 0, err
	}
	entries, err := collect(rows, scan)
	return entries, revision, err
}

// page is the number of keys of a snapshot that are read at once.
const page = 200

func (s *Store) Snapshot(ctx context.Context, prefix string, read func(int64, iter.Seq2[store.Entry, error]) error) (err error) {
	defer func() { err = s.damaged(err) }()
	tx, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var revision int64
	if err := tx.QueryRowContext(ctx, "SELECT value FROM meta WHERE name = 'revision'").Scan(&revision); err != nil {
		return err
	}
	return read(revision, func(yield func(store.Entry, error) bool) {
		for from := []byte(prefix); ; {
			query, args := within(from, prefix)
			rows, err := tx.QueryContext(ctx, query+" LIMIT ?", append(args, page)...)
			var entries []store.Entry
			if err == nil {
				entries, err = collect(rows, scan)
			}
			if err != nil {
				yield(store.Entry{}, fmt.Errorf("keys %q: %w", prefix, err))
				return
			}
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
			if len(entries) < page {
				return
			}
			from = []byte(entries[page-1].Key + "\x00")
		}
	})
}

func scan(r *sql.Rows) (e store.Entry, err error) {
	err = r.Scan(&e.Key, &e.Value, &e.Created, &e.Modified)
	return e, err
}

func (s *Store) Page(ctx context.Context, prefix, after string, most int) (_ []store.Entry, err error) {
	defer func() { err = s.damaged(err) }()
	from := prefix
	if after >= prefix {
		from = after + "\x00"
	}
	query, args := within([]byte(from), prefix)
	args = append(args, most)
	var rows *sql.Rows
	if query == bounded {
		rows, err = s.pages.QueryContext(ctx, args...)
	} else {
		rows, err = s.read.QueryContext(ctx, query+" LIMIT ?", args...)
	}
	if err != nil {
		return nil, err
	}
	return collect(rows, scan)
}

// bounded is the query that within returns if there is a first key after the prefix. Nearly all
// prefixes have one.
const bounded = "SELECT key, value, created, modified FROM kv WHERE key >= ? AND key < ? AND " + live + " ORDER BY key"

// within returns a query for the keys that start with a prefix, beginning with a given key. SQLite
// uses both limits to find the keys, so that later keys take no time.
func within(from []byte, prefix string) (query string, args []any) {
	query, args = "SELECT key, value, created, modified FROM kv WHERE key >= ?", []any{from}
	if to := end(prefix); to != nil {
		query, args = query+" AND key < ?", append(args, to)
	}
	return query + " AND " + live + " ORDER BY key", append(args, time.Now().UnixMilli())
}

// end returns the first key after all keys that start with a prefix. It returns nil if there is no
// such key.
func end(prefix string) []byte {
	b := []byte(prefix)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] < 0xff {
			b[i]++
			return b[:i+1]
		}
	}
	return nil
}

func (s *Store) Commit(ctx context.Context, txn store.Txn) (int64, error) {
	touched := map[string]bool{}
	for _, op := range txn.Then {
		if touched[op.Key] {
			return 0, fmt.Errorf("key %q: changed twice in one transaction", op.Key)
		}
		touched[op.Key] = true
	}
	for _, c := range txn.If {
		if c.Tree != "" {
			return 0, fmt.Errorf("key %q of tree %q: a file is one tree, want a condition on a key of its own", c.Key, c.Tree)
		}
	}
	return s.update(ctx, func(t *tx) error {
		for _, c := range txn.If {
			e, _, err := t.current(c.Key)
			if err != nil {
				return err
			}
			if e.Modified != c.Modified {
				return fmt.Errorf("key %q: at revision %d, want %d: %w", c.Key, e.Modified, c.Modified, store.ErrConflict)
			}
		}
		for _, op := range txn.Then {
			if op.Lease == 0 {
				continue
			}
			if err := t.lease(op.Lease); err != nil {
				return err
			}
		}
		return t.revise(func() error {
			for _, op := range txn.Then {
				change := t.put
				if op.Delete {
					change = func(op store.Op) error { return t.delete(op.Key) }
				}
				if err := change(op); err != nil {
					return err
				}
			}
			return nil
		})
	})
}
