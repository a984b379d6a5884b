package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/storetest"
)

func open(t *testing.T, path string, o sqlite.Options) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		return open(t, filepath.Join(t.TempDir(), "state?#%20.db"), sqlite.Options{})
	})
}

func TestReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s := open(t, path, sqlite.Options{})
	revision, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put("a", []byte("1"))}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v, want 0600", st.Mode(), err)
	}
	s = open(t, path, sqlite.Options{})
	e, err := s.Get(t.Context(), "a")
	if err != nil || e.Modified != revision {
		t.Fatalf("got %v, %v, want revision %d", e, err, revision)
	}
	for e, err := range s.Watch(t.Context(), "", revision-1) {
		if err != nil || e.Modified != revision {
			t.Fatalf("watch after reopening: got %v, %v", e, err)
		}
		break
	}
}

// TestWatchOtherProcess checks that a watch yields a change which another process commits while the
// watch waits.
func TestWatchOtherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	here, there := open(t, path, sqlite.Options{}), open(t, path, sqlite.Options{})
	commit := func(s *sqlite.Store, key string) int64 {
		revision, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(key, nil)}})
		if err != nil {
			t.Error(err)
		}
		return revision
	}
	first := commit(there, "0")
	ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
	defer cancel()
	events := 0
	for e, err := range here.Watch(ctx, "", first-1) {
		if err != nil || e.Key != fmt.Sprint(events) {
			t.Fatalf("got %v, %v, want key %d", e, err, events)
		}
		if events++; events == 3 {
			return
		}
		next := fmt.Sprint(events)
		time.AfterFunc(50*time.Millisecond, func() { commit(there, next) }) // once the watch waits
	}
	t.Fatalf("the watch ended after %d events", events)
}

func TestNewerSchema(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	open(t, path, sqlite.Options{}).Close()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
	db.Close()
	_, err = sqlite.Open(path, sqlite.Options{})
	if err == nil || !strings.Contains(err.Error(), "schema version 99, this Florete knows up to 1: run the newer one") {
		t.Fatalf("got %v", err)
	}
}

// TestOlderSchema checks that data of a store of the first version is kept, that its changes can be
// watched, and that programs of that version can still use the store.
func TestOlderSchema(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	exec := func(text string) {
		t.Helper()
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	first, err := os.ReadFile("testdata/version1.sql")
	if err != nil {
		t.Fatal(err)
	}
	exec(string(first))
	s := open(t, path, sqlite.Options{Keep: 4})
	if e, err := s.Get(t.Context(), "a"); err != nil || string(e.Value) != "2" || e.Created != 2 || e.Modified != 3 {
		t.Errorf("got %v, %v", e, err)
	}
	want := func(after int64, all ...string) {
		t.Helper()
		n := 0
		for e, err := range s.Watch(t.Context(), "", after) {
			if got := fmt.Sprintf("%d %q=%q %t", e.Modified, e.Key, e.Value, e.Deleted); err != nil || got != all[n] {
				t.Fatalf("change %d: got %s, %v, want %s", n, got, err, all[n])
			}
			if n++; n == len(all) {
				return
			}
		}
	}
	want(1, `3 "a"="2" false`)
	if _, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put("\xff", []byte("\x00")), store.Delete("a")}}); err != nil {
		t.Fatal(err)
	}
	// What the first version does for each change, the second of which is a deletion.
	exec(`INSERT INTO kv VALUES (X'62', X'33', 5, 5, 0)`)
	exec(`INSERT INTO events SELECT 5, 1, key, value, created FROM kv WHERE key = X'62'`)
	exec(`DELETE FROM kv WHERE key = X'FF'`)
	exec(`INSERT INTO events VALUES (5, 2, X'FF', NULL, 4)`)
	exec(`UPDATE meta SET value = CASE name WHEN 'revision' THEN 5 ELSE max(value, 0) END`)
	want(1, `4 "a"="" true`, `5 "b"="3" false`, `5 "\xff"="" true`)
	rows := 0
	if err := db.QueryRow(`SELECT count(*) FROM events WHERE (revision, step) > (1, 0) AND key >= X'61' AND (key < X'62' OR value = X'33')`).Scan(&rows); err != nil || rows != 2 {
		t.Errorf("the first version reads %d changes, %v, want 2", rows, err)
	}
	exec(`DELETE FROM events WHERE revision <= 4`)
	if err := db.QueryRow(`SELECT count(*) FROM changes`).Scan(&rows); err != nil || rows != 2 {
		t.Errorf("%d changes are kept after it forgot those up to 4, %v, want 2", rows, err)
	}
	s = open(t, path, sqlite.Options{}) // which does not upgrade it again
	want(4, `5 "b"="3" false`)
}

// TestOlderFrozen checks that a store that was frozen by a move before the upgrade is still frozen
// after it.
func TestOlderFrozen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	first, err := os.ReadFile("testdata/version1.sql")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(string(first) + `;CREATE TRIGGER frozen_INSERT BEFORE INSERT ON kv BEGIN SELECT RAISE(ABORT, 'florete: this state has moved'); END`); err != nil {
		t.Fatal(err)
	}
	s := open(t, path, sqlite.Options{})
	if _, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put("b", nil)}}); !errors.Is(err, store.ErrMoved) {
		t.Errorf("got %v, want ErrMoved", err)
	}
}

func TestKeep(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "state.db"), sqlite.Options{Keep: 3})
	var last int64
	for i := range 10 {
		last, _ = s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(fmt.Sprint("a", i), nil)}})
	}
	for _, err := range s.Watch(t.Context(), "a", last-4) {
		if !errors.Is(err, store.ErrCompacted) {
			t.Fatalf("four revisions back: got %v, want ErrCompacted", err)
		}
	}
	n := 0
	for _, err := range s.Watch(t.Context(), "a", last-3) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 3 {
			break
		}
	}
}

// TestLeaseTime checks, in virtual time, that a renewed lease stays, and that an abandoned lease
// ends to the millisecond.
func TestLeaseTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	synctest.Test(t, func(t *testing.T) {
		s := open(t, path, sqlite.Options{})
		defer s.Close()
		id, err := s.Lease(t.Context(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{{Key: "a", Lease: id}}}); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			time.Sleep(50 * time.Second)
			if err := s.KeepAlive(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute - time.Millisecond)
		if _, err := s.Get(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
		if _, err := s.Get(t.Context(), "a"); !errors.Is(err, store.ErrNotFound) {
			t.Fatalf("got %v, want ErrNotFound", err)
		}
	})
}

// TestClosed checks that calls after Close fail and open nothing.
func TestClosed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	s, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	put := store.Txn{Then: []store.Op{store.Put("a", []byte("1"))}}
	if _, err := s.Commit(ctx, put); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), os.Remove(path)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(ctx, put); err == nil {
		t.Error("a commit after Close succeeds")
	}
	if _, err := s.Get(ctx, "a"); err == nil {
		t.Error("a key is read after Close")
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the file was made anew")
	}
}
