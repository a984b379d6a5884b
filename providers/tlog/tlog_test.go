package tlog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
	"github.com/florete/florete/tests/kit"
)

// env is a store with rows, and its log.
type env struct {
	*testing.T
	dir string
	db  *sqlite.Store
	n   int
}

func newEnv(t *testing.T) *env {
	e := &env{T: t, dir: t.TempDir()}
	e.openStore()
	return e
}

func (e *env) path() string { return filepath.Join(e.dir, "state.db") }

func (e *env) openStore() {
	db, err := sqlite.Open(e.path(), sqlite.Options{})
	if err != nil {
		e.Fatal(err)
	}
	e.db = db
	e.Cleanup(func() { db.Close() })
}

// lose empties the store, and returns the rows that it had.
func (e *env) lose() []store.Entry {
	entries, _, err := e.db.List(e.Context(), "audit/")
	if err != nil {
		e.Fatal(err)
	}
	e.db.Close()
	if err := os.Remove(e.path()); err != nil {
		e.Fatal(err)
	}
	e.openStore()
	return entries
}

func (e *env) log() *Log {
	return New(Config{
		Dir: filepath.Join(e.dir, "log"), Name: "demo.flor/cert/forge", Store: e.db, Prefix: "audit/", Logger: slog.New(slog.DiscardHandler),
		Kept: func(now time.Time) time.Time { return now.AddDate(-1, 0, 0) },
	})
}

// rows commits some, of the time that is ago.
func (e *env) rows(n int, ago time.Duration) (keys []string) {
	for range n {
		e.n++
		key := fmt.Sprintf("audit/%016x-%d", time.Now().Add(-ago).UnixNano(), e.n)
		if _, err := e.db.Commit(e.Context(), store.Txn{Then: []store.Op{store.Put(key, fmt.Appendf(nil, `{"n":%d}`, e.n)), store.Put("other", nil)}}); err != nil {
			e.Fatal(err)
		}
		keys = append(keys, key)
	}
	return keys
}

// while runs the log, until what f waits for.
func (e *env) while(l *Log, f func()) {
	ctx, cancel := context.WithCancel(e.Context())
	var wg sync.WaitGroup
	wg.Go(func() { l.Run(ctx) })
	defer wg.Wait()
	defer cancel()
	f()
}

// has waits until the log has a checkpoint of so many rows.
func (e *env) has(l *Log, n int) hostapi.VerifiedCheckpoint {
	e.Helper()
	var c hostapi.VerifiedCheckpoint
	kit.Succeeds(e, "rows in the log", func() (err error) {
		if _, c, err = l.Checkpoint(e.Context()); err == nil && c.Size > uint64(n) {
			e.Fatalf("%d rows, want %d", c.Size, n)
		}
		if err == nil && c.Size < uint64(n) {
			err = fmt.Errorf("%d rows, want %d", c.Size, n)
		}
		return err
	})
	return c
}

// complete checks that the log has each row of the store once.
func (e *env) complete(l *Log) {
	e.Helper()
	_, c, err := l.Checkpoint(e.Context())
	if err != nil {
		e.Fatal(err)
	}
	has := map[string]bool{}
	for leaf, err := range l.Leaves(e.Context(), 0, c.Size) {
		if err != nil {
			e.Fatal(err)
		}
		if has[leaf.Key] {
			e.Errorf("%s is in the log twice", leaf.Key)
		}
		has[leaf.Key] = true
	}
	entries, _, err := e.db.List(e.Context(), "audit/")
	if err != nil {
		e.Fatal(err)
	}
	for _, row := range entries {
		if !has[row.Key] {
			e.Errorf("%s, revision %d, is not in the log", row.Key, row.Created)
		}
	}
	if len(has) != len(entries) {
		e.Errorf("%d rows in the log, %d in the store", len(has), len(entries))
	}
}

// TestAppend checks that rows are appended in the order in which they were committed: rows from
// before the log was made, new rows, and rows committed while the log did not run.
func TestAppend(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	keys := e.rows(3, time.Hour)
	l := e.log()
	var before hostapi.VerifiedCheckpoint
	e.while(l, func() {
		before = e.has(l, 3)
		keys = append(keys, e.rows(300, 0)...)
		keys = append(keys, e.rows(1, time.Minute)...) // begun before the others
		c := e.has(l, 304)
		proof, err := l.Consistency(t.Context(), before.Size, c.Size)
		if err == nil {
			err = c.Extends(before, proof)
		}
		if err != nil {
			t.Error(err)
		}
	})
	keys = append(keys, e.rows(150, 0)...) // more than the store has changes of
	l = e.log()
	e.while(l, func() { e.has(l, 454) })
	i := 0
	for leaf, err := range l.Leaves(t.Context(), 0, 454) {
		if err != nil || leaf.Key != keys[i] {
			t.Fatalf("row %d is %s, want %s, %v", i, leaf.Key, keys[i], err)
		}
		i++
	}
	_, c, err := l.Checkpoint(t.Context())
	if err != nil || c.Log != "demo.flor/cert/forge" {
		t.Fatal(c, err)
	}
	for i, leaf := range []int{0, 299, 453} {
		proof, err := l.Inclusion(t.Context(), uint64(leaf), c.Size)
		if err != nil {
			t.Fatal(err)
		}
		for got, err := range l.Leaves(t.Context(), uint64(leaf), c.Size) {
			if err != nil || c.Includes(got.String(), uint64(leaf), proof) != nil || c.Includes(got.String()+"x", uint64(leaf), proof) == nil {
				t.Errorf("%d: %v", i, err)
			}
			break
		}
	}
	if e.complete(l); l.Fault() != "" {
		t.Error(l.Fault())
	}
}

// TestAnotherStore checks that a log does not get rows twice from a restored or moved store, which
// has other revisions and may have fewer rows.
func TestAnotherStore(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.rows(20, time.Hour)
	l := e.log()
	e.while(l, func() { e.has(l, 20) })
	entries := e.lose()
	rand.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
	for i, row := range entries {
		if i == 10 {
			e.rows(5, 2*time.Hour)
		}
		if _, err := e.db.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(row.Key, row.Value)}}); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 2 {
		l = e.log()
		e.while(l, func() {
			e.has(l, 25+n)
			e.rows(1, 0)
			e.has(l, 26+n)
		})
	}
	e.complete(l)
}

// TestPutBack checks that rows that a restore puts back while the process runs are not appended
// again, however late the process sees them.
func TestPutBack(t *testing.T) {
	t.Parallel()
	for _, atWork := range []bool{true, false} {
		e := newEnv(t)
		e.rows(250, time.Hour)
		l := e.log()
		e.while(l, func() { e.has(l, 250) })
		entries := e.lose()
		l = e.log()
		e.rows(2, 0)
		restore := func() {
			now := time.Now()
			begin := store.Put(fmt.Sprintf("audit/%016x-restore", now.UnixNano()), []byte(`{"code":"restore"}`))
			if _, err := e.db.Commit(t.Context(), store.Txn{Then: []store.Op{Restoring(now), begin}}); err != nil {
				t.Fatal(err)
			}
			for _, row := range entries {
				if _, err := e.db.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(row.Key, row.Value)}}); err != nil {
					t.Fatal(err)
				}
			}
		}
		e.while(l, func() {
			e.has(l, 252)
			if atWork {
				restore()
				e.rows(1, 0)
				e.has(l, 254)
			}
		})
		if !atWork {
			restore()
			e.rows(1, 0)
			l = e.log()
			e.while(l, func() { e.has(l, 254) })
		}
		e.complete(l)
	}
}

// TestDoubled checks that verifying names a row that the log contains twice.
func TestDoubled(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	keys := e.rows(3, time.Hour)
	l := e.log()
	e.while(l, func() {
		e.has(l, 3)
		row, err := e.db.Get(t.Context(), keys[1])
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range []store.Op{store.Delete(row.Key), store.Put(row.Key, row.Value)} {
			if _, err := e.db.Commit(t.Context(), store.Txn{Then: []store.Op{op}}); err != nil {
				t.Fatal(err)
			}
		}
		e.has(l, 4)
	})
	v, err := Verify(t.Context(), l.Local(), time.Time{})
	if err != nil || v.Doubled != 1 || len(v.Faults) != 1 || !strings.Contains(v.Faults[0], keys[1]) {
		t.Errorf("%+v, %v", v, err)
	}
}

// shortKeeper is a source that says that its rows are over, and has none of them.
type shortKeeper struct{ Source }

func (s shortKeeper) Head(ctx context.Context) (Head, error) {
	h, err := s.Source.Head(ctx)
	h.Kept = time.Now().Add(time.Hour)
	return h, err
}

func (s shortKeeper) Rows(ctx context.Context, begin, end uint64) ([]Logged, error) {
	rows, err := s.Source.Rows(ctx, begin, end)
	for i := range rows {
		rows[i].Row = nil
	}
	return rows, err
}

// TestKept checks that a source cannot pretend that removed rows had expired, if the verifier knows
// for how long rows are kept.
func TestKept(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.rows(3, time.Hour)
	l := e.log()
	e.while(l, func() { e.has(l, 3) })
	for kept, missing := range map[time.Time]uint64{{}: 0, time.Now().AddDate(-1, 0, 0): 3, time.Now().AddDate(1, 0, 0): 0} {
		v, err := Verify(t.Context(), shortKeeper{l.Local()}, kept)
		if err != nil || v.Missing != missing || v.Elsewhere != 3-missing || len(v.Faults) != int(missing) {
			t.Errorf("kept %s: %+v, %v, want %d missing", kept, v, err, missing)
		}
	}
}

// edit changes the file of the store behind the process.
func (e *env) edit(query string, args ...any) {
	e.Helper()
	db, err := sql.Open("sqlite", e.path())
	if err != nil {
		e.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(query, args...); err != nil {
		e.Fatal(err)
	}
}

// TestCompare checks that rows that were edited or removed in the store are found, and that rows
// that may have been archived are not reported as missing.
func TestCompare(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(e *env, keys []string)
		want string
	}{
		"nothing": {func(*env, []string) {}, ""},
		"edited": {func(e *env, keys []string) {
			e.edit("UPDATE kv SET value = ? WHERE key = ?", []byte(`{"n":99}`), []byte(keys[5]))
		}, "1 rows of the store were edited, and 0 are gone"},
		"removed": {func(e *env, keys []string) { e.edit("DELETE FROM kv WHERE key = ?", []byte(keys[9])) }, "0 rows of the store were edited, and 1 are gone"},
		"by the API": {func(e *env, keys []string) {
			if _, err := e.db.Commit(e.Context(), store.Txn{Then: []store.Op{store.Put(keys[0], nil), store.Delete(keys[1])}}); err != nil {
				e.Fatal(err)
			}
		}, "1 rows of the store were edited, and 1 are gone"},
		"archived": {func(e *env, _ []string) {
			e.edit("DELETE FROM kv WHERE key < ?", []byte(keyAt("audit/", time.Now().AddDate(-1, 0, 0))))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			keys := e.rows(10, time.Hour)
			l := e.log()
			e.while(l, func() {
				e.has(l, 10)
				e.rows(3, 400*24*time.Hour)
				e.has(l, 13)
			})
			c.edit(e, keys)
			l = e.log()
			e.while(l, func() {
				kit.Eventually(t, "the log to be looked at", func() bool { return l.fault.Load() != nil })
			})
			if got := l.Fault(); l.fault.Load() == nil || !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

// TestLate checks that a row with an old time, committed while the store had no changes to watch,
// is found and appended.
func TestLate(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.rows(10, 0)
	l := e.log()
	e.while(l, func() { e.has(l, 10) })
	e.rows(1, 24*time.Hour)
	e.rows(200, 0)
	l = e.log()
	e.while(l, func() { e.has(l, 211) })
	e.complete(l)
	l = e.log()
	e.while(l, func() { e.rows(1, 0); e.has(l, 212) })
	e.complete(l)
}

// TestKey checks that a log whose key is lost is not signed with another key.
func TestKey(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	l := e.log()
	if _, _, err := l.Checkpoint(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	e.rows(1, 0)
	e.while(l, func() { e.has(l, 1) })
	if err := os.Remove(filepath.Join(e.dir, "log", keyFile)); err != nil {
		t.Fatal(err)
	}
	if err := e.log().run(t.Context()); err == nil || !strings.Contains(err.Error(), "is gone, and hosts know this log by it") {
		t.Error(err)
	}
}

// TestOneAppends checks that two processes cannot append to a log at the same time.
func TestOneAppends(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.rows(1, 0)
	l := e.log()
	e.while(l, func() {
		e.has(l, 1)
		if err := e.log().run(t.Context()); err == nil || !strings.Contains(err.Error(), "another process appends to this log") {
			t.Error(err)
		}
	})
}

// FuzzLeaf checks that a leaf that parses is encoded to the same bytes.
func FuzzLeaf(f *testing.F) {
	f.Add(NewLeaf("audit/0123456789abcdef-ABC", 17, []byte("{}")).String())
	f.Add("a 1")
	f.Fuzz(func(t *testing.T, text string) {
		if l, err := ParseLeaf(text); err == nil && l.String() != text {
			t.Errorf("%q became %q", text, l)
		}
	})
}

// TestRests checks that Tessera does not run while nothing is appended, and that later rows are
// still appended. The test does not run in parallel, because other logs of the process also have
// goroutines of Tessera.
func TestRests(t *testing.T) {
	e := newEnv(t)
	e.rows(3, 0)
	l := e.log()
	l.closeAfter = time.Millisecond
	e.while(l, func() {
		for n := 3; n < 8; n++ {
			e.has(l, n)
			kit.Eventually(t, "Tessera to be closed", func() bool {
				all := make([]byte, 1<<20)
				return !strings.Contains(string(all[:runtime.Stack(all, true)]), "transparency-dev/tessera")
			})
			e.rows(1, 0)
		}
		e.has(l, 8)
	})
	e.complete(l)
}

// TestReopened checks that after Tessera was closed, new rows follow the rows appended before, and
// that nothing is appended to a log that something else has extended meanwhile.
func TestReopened(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	l := e.log()
	if err := os.MkdirAll(l.Config.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	leaves := func(n int) (all []Leaf) {
		for _, key := range e.rows(n, 0) {
			all = append(all, Leaf{Key: key, Revision: 1})
		}
		return all
	}
	a, other := &appender{Log: l}, &appender{Log: l}
	appends := func(a *appender, n int) {
		t.Helper()
		if err := a.append(t.Context(), leaves(n)); err != nil {
			t.Fatal(err)
		}
		a.close()
	}
	appends(a, 3)
	appends(a, 2)
	e.has(l, 5)
	if err := other.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	appends(other, 1)
	if err := a.append(t.Context(), leaves(1)); err == nil {
		t.Error("appended to a log that something else made longer")
	}
	a.close()
	e.has(l, 6)
}
