package sqlite

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/florete/florete/providers/store"
)

// removed is the number of old revisions that are removed at once.
const removed = 100

// tx is a write transaction. It contains one revision for each requested change. Before these, it
// may contain a revision in which leases end.
type tx struct {
	store    *Store
	began    int64 // at which revision
	revision int64
	touched  []change // by the newest revision
}

func (t *tx) exec(query string, args ...any) error { return t.store.writing.exec(query, args...) }

// start reads the current revision, and ends the leases whose time is over. If the clock was set
// back, a lease could last longer than its TTL from now. Such a lease gets its TTL from now.
func (t *tx) start() error {
	now := time.Now().UnixMilli()
	at, err := t.store.writing.integers("SELECT value, EXISTS (SELECT 1 FROM leases WHERE expires <= ?) FROM meta WHERE name = 'revision'", now)
	if err != nil {
		return err
	}
	t.revision = at[0]
	t.began = t.revision
	if last := t.store.clock; last == 0 || now < last {
		if err := t.exec("UPDATE leases SET expires = ttl + ?1 WHERE expires > ttl + ?1", now); err != nil {
			return err
		}
	}
	t.store.clock = now
	if at[1] == 0 {
		return nil
	}
	return t.end("expires <= ?", now)
}

// revise makes a revision of a change. If the change touches no key, there is no revision. An error
// ends the transaction.
func (t *tx) revise(change func() error) error {
	t.revision, t.touched = t.revision+1, nil
	if err := change(); err != nil {
		return err
	}
	if len(t.touched) == 0 {
		t.revision--
		return nil
	}
	return t.journal()
}

// record records the new revision. The argument compacted is the revision up to which the changes
// are forgotten.
func (t *tx) record(compacted int64) error {
	return t.exec("UPDATE meta SET value = CASE name WHEN 'revision' THEN ?1 ELSE max(value, ?2) END", t.revision, compacted)
}

// remove deletes some of the forgotten changes. It does not delete all at once, because they are on
// other pages of the file than new changes.
func (t *tx) remove() error {
	if t.revision/removed == t.began/removed {
		return nil
	}
	return t.exec("DELETE FROM changes WHERE revision <= (SELECT value FROM meta WHERE name = 'compacted')")
}

// current returns the entry of a key. The result ok is false if there is no entry.
func (t *tx) current(key string) (e store.Entry, ok bool, err error) {
	e.Key = key
	at, err := t.store.writing.integers("SELECT created, modified FROM kv WHERE key = ?", []byte(key))
	if errors.Is(err, sql.ErrNoRows) {
		return e, false, nil
	}
	if err != nil {
		return e, false, err
	}
	e.Created, e.Modified = at[0], at[1]
	return e, true, nil
}

func (t *tx) put(op store.Op) error {
	value, key := op.Value, []byte(op.Key)
	if value == nil {
		value = []byte{}
	}
	t.touched = append(t.touched, change{key: op.Key})
	return t.exec("INSERT INTO kv VALUES (?1, ?2, ?3, ?3, ?4) ON CONFLICT (key) DO UPDATE SET value = ?2, modified = ?3, lease = ?4",
		key, value, t.revision, int64(op.Lease))
}

func (t *tx) delete(key string) error {
	_, ok, err := t.current(key)
	if err != nil || !ok {
		return err
	}
	t.touched = append(t.touched, change{key: key, deleted: true})
	return t.exec("DELETE FROM kv WHERE key = ?", []byte(key))
}

// lease returns an error unless a lease exists.
func (t *tx) lease(id store.LeaseID) error {
	_, err := t.store.writing.row("SELECT 1 FROM leases WHERE id = ?", int64(id))
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("lease %d: %w", id, store.ErrNotFound)
	}
	return err
}

// attached returns a condition in SQL that selects the keys attached to certain leases. The first
// part of the condition lets SQLite use the index.
func attached(where string) string {
	return "SELECT key FROM kv WHERE lease != 0 AND lease IN (SELECT id FROM leases WHERE " + where + ") ORDER BY key"
}

// end deletes leases and the keys attached to them. The deletion is a separate revision.
func (t *tx) end(where string, arg any) error {
	var keys []string
	var odd error
	err := t.store.writing.rows(attached(where), []any{arg}, func(row []driver.Value) {
		key, ok := row[0].([]byte)
		if !ok {
			odd = fmt.Errorf("a key that is %T", row[0])
		}
		keys = append(keys, string(key))
	})
	if err = errors.Join(err, odd); err != nil {
		return err
	}
	err = t.revise(func() error {
		for _, k := range keys {
			if err := t.delete(k); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return t.exec("DELETE FROM leases WHERE "+where, arg)
}

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
