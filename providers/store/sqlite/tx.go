package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/florete/florete/providers/store"
)

// tx is a write transaction: perhaps a revision in which leases ended, then one of each change
// that was requested.
type tx struct {
	store    *Store
	revision int64
	step     int
}

func (t *tx) exec(query string, args ...any) error {
	p, err := t.store.prepared(query)
	if err == nil {
		_, err = p.Exec(args...)
	}
	return err
}

// row reads one into values.
func (t *tx) row(query string, args []any, into ...any) error {
	p, err := t.store.prepared(query)
	if err != nil {
		return err
	}
	return p.QueryRow(args...).Scan(into...)
}

func (t *tx) meta(name string) (v int64, err error) {
	err = t.row("SELECT value FROM meta WHERE name = ?", []any{name}, &v)
	return v, err
}

// begin starts a revision.
func (t *tx) begin() { t.revision, t.step = t.revision+1, 0 }

// finish records the revision and forgets changes older than keep revisions.
func (t *tx) finish(keep int64) error {
	if err := t.exec("UPDATE meta SET value = ? WHERE name = 'revision'", t.revision); err != nil {
		return err
	}
	if t.revision <= keep {
		return nil
	}
	return t.compact(t.revision - keep)
}

func (t *tx) compact(revision int64) error {
	if err := t.exec("UPDATE meta SET value = max(value, ?) WHERE name = 'compacted'", revision); err != nil {
		return err
	}
	return t.exec("DELETE FROM events WHERE revision <= ?", revision)
}

// current is the entry of a key, and whether there is one.
func (t *tx) current(key string) (e store.Entry, ok bool, err error) {
	e.Key = key
	err = t.row("SELECT created, modified FROM kv WHERE key = ?", []any{[]byte(key)}, &e.Created, &e.Modified)
	if errors.Is(err, sql.ErrNoRows) {
		return e, false, nil
	}
	return e, err == nil, err
}

func (t *tx) event(key string, value []byte, created int64) error {
	t.step++
	return t.exec("INSERT INTO events VALUES (?, ?, ?, ?, ?)", t.revision, t.step, []byte(key), value, created)
}

func (t *tx) put(op store.Op) error {
	value := op.Value
	if value == nil {
		value = []byte{} // NULL is a deletion
	}
	var created int64
	err := t.row("INSERT INTO kv VALUES (?1, ?2, ?3, ?3, ?4) ON CONFLICT (key) DO UPDATE SET value = ?2, modified = ?3, lease = ?4 RETURNING created",
		[]any{[]byte(op.Key), value, t.revision, int64(op.Lease)}, &created)
	if err != nil {
		return err
	}
	return t.event(op.Key, value, created)
}

func (t *tx) delete(key string) error {
	e, ok, err := t.current(key)
	if err != nil || !ok {
		return err
	}
	if err := t.exec("DELETE FROM kv WHERE key = ?", []byte(key)); err != nil {
		return err
	}
	return t.event(key, nil, e.Created)
}

// lease checks that a lease exists.
func (t *tx) lease(id store.LeaseID) error {
	var n int
	if err := t.row("SELECT count(*) FROM leases WHERE id = ?", []any{int64(id)}, &n); err != nil {
		return err
	}
	if n == 0 {
		return fmt.Errorf("lease %d: %w", id, store.ErrNotFound)
	}
	return nil
}

// attached selects the keys of leases. Each change of the store runs it: the first
// condition is what lets it use the index, and not read all keys.
func attached(where string) string {
	return "SELECT key FROM kv WHERE lease != 0 AND lease IN (SELECT id FROM leases WHERE " + where + ") ORDER BY key"
}

// end deletes leases and the keys attached to them, in a revision of their own.
func (t *tx) end(where string, arg any) error {
	p, err := t.store.prepared(attached(where))
	if err != nil {
		return err
	}
	rows, err := p.Query(arg)
	if err != nil {
		return err
	}
	keys, err := collect(rows, func(r *sql.Rows) (key string, err error) { return key, r.Scan(&key) })
	if err != nil {
		return err
	}
	if len(keys) > 0 {
		t.begin()
	}
	for _, k := range keys {
		if err := t.delete(k); err != nil {
			return err
		}
	}
	return t.exec("DELETE FROM leases WHERE "+where, arg)
}

// expire ends the leases whose time has come.
func (t *tx) expire() error { return t.end("expires <= ?", time.Now().UnixMilli()) }

func collect[T any](rows *sql.Rows, scan func(*sql.Rows) (T, error)) ([]T, error) {
	defer rows.Close()
	var all []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}
