// Package storetest contains the tests that every implementation of store.Store must pass.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/tests/kit"
)

// Compacter is implemented by stores that can delete their history of changes up to a revision.
type Compacter interface {
	Compact(ctx context.Context, revision int64) error
}

// Run tests that an implementation behaves as the documentation of store.Store says. The function
// open returns a new, empty store, which Run closes.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	for name, test := range map[string]func(*testing.T, store.Store){
		"keys":         keys,
		"list":         list,
		"page":         page,
		"snapshot":     snapshot,
		"conditions":   conditions,
		"refusals":     refusals,
		"counter":      counter,
		"watch":        watch,
		"watch order":  watchOrder,
		"watch closed": watchClosed,
		"compaction":   compaction,
		"lease ends":   leaseEnds,
		"lease revoke": leaseRevoke,
		"lease moves":  leaseMoves,
		"fencing":      fencing,
		"largest":      largest,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			t.Cleanup(func() { s.Close() })
			test(t, s)
		})
	}
}

func page(t *testing.T, s store.Store) {
	commit(t, s, store.Put("a", nil), store.Put("b/", nil), store.Put("b/1", nil), store.Put("b/2", nil), store.Put("c", nil))
	for _, c := range []struct {
		prefix, after string
		most          int
		want          string
	}{
		{"b/", "", 2, "b/ b/1"}, {"b/", "a", 1, "b/"}, {"b/", "b/", 9, "b/1 b/2"}, {"b/", "b/1", 2, "b/2"},
		{"b/", "b/2", 2, ""}, {"b/", "c", 2, ""}, {"", "", 3, "a b/ b/1"}, {"", "b/2", 3, "c"},
	} {
		entries, err := s.Page(t.Context(), c.prefix, c.after, c.most)
		var keys []string
		for _, e := range entries {
			keys = append(keys, e.Key)
		}
		if got := strings.Join(keys, " "); err != nil || got != c.want {
			t.Errorf("%d of %q after %q: got %q, %v, want %q", c.most, c.prefix, c.after, got, err, c.want)
		}
	}
}

// snapshot checks that a snapshot of several pages shows one revision, even if the store changes
// while it is read.
func snapshot(t *testing.T, s store.Store) {
	const keys = 1234
	var revision int64
	for from := 0; from < keys; from += store.MaxOps {
		var ops []store.Op
		for i := from; i < min(from+store.MaxOps, keys); i++ {
			ops = append(ops, store.Put(fmt.Sprintf("b/%05d", i), []byte("old")))
		}
		revision = commit(t, s, ops...)
	}
	commit(t, s, store.Put("a", nil))
	revision = commit(t, s, store.Put("c", nil))
	n := 0
	err := s.Snapshot(t.Context(), "b/", func(at int64, entries iter.Seq2[store.Entry, error]) error {
		if at != revision {
			t.Errorf("at revision %d, want %d", at, revision)
		}
		commit(t, s, store.Put("b/01233", []byte("new")), store.Put("b/99999", nil), store.Delete("b/01200"))
		for e, err := range entries {
			if err != nil {
				return err
			}
			if want := fmt.Sprintf("b/%05d", n); e.Key != want || string(e.Value) != "old" || e.Modified > revision {
				t.Fatalf("got %v, want %s of before", e, want)
			}
			n++
		}
		return nil
	})
	if err != nil || n != keys {
		t.Errorf("%d keys, %v, want %d", n, err, keys)
	}
	stop := errors.New("stop")
	err = s.Snapshot(t.Context(), "", func(_ int64, entries iter.Seq2[store.Entry, error]) error {
		for range entries {
			return stop
		}
		return nil
	})
	if err != stop {
		t.Errorf("got %v, want what read returned", err)
	}
	commit(t, s, store.Put("a", nil)) // nothing is held
}

func commit(t *testing.T, s store.Store, ops ...store.Op) int64 {
	t.Helper()
	revision, err := s.Commit(t.Context(), store.Txn{Then: ops})
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

func wantEntry(t *testing.T, s store.Store, want store.Entry) {
	t.Helper()
	got, err := s.Get(t.Context(), want.Key)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func wantAbsent(t *testing.T, s store.Store, key string) {
	t.Helper()
	if e, err := s.Get(t.Context(), key); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("key %q: got %v, %v, want ErrNotFound", key, e, err)
	}
}

func keys(t *testing.T, s store.Store) {
	wantAbsent(t, s, "a")
	r1 := commit(t, s, store.Put("a", []byte("1")), store.Put("b", nil), store.Put("nul\x00\xff", []byte{0, 255}))
	if r1 < 1 {
		t.Fatalf("revision %d, want at least 1", r1)
	}
	wantEntry(t, s, store.Entry{Key: "a", Value: []byte("1"), Created: r1, Modified: r1})
	wantEntry(t, s, store.Entry{Key: "b", Value: []byte{}, Created: r1, Modified: r1})
	wantEntry(t, s, store.Entry{Key: "nul\x00\xff", Value: []byte{0, 255}, Created: r1, Modified: r1})
	r2 := commit(t, s, store.Put("a", []byte("2")))
	if r2 != r1+1 {
		t.Fatalf("second revision %d, want %d", r2, r1+1)
	}
	wantEntry(t, s, store.Entry{Key: "a", Value: []byte("2"), Created: r1, Modified: r2})
	r3 := commit(t, s, store.Delete("a"))
	wantAbsent(t, s, "a")
	if r := commit(t, s, store.Delete("a")); r != r3 {
		t.Fatalf("a transaction that changes nothing made revision %d, want still %d", r, r3)
	}
	r4 := commit(t, s, store.Put("a", []byte("3")))
	wantEntry(t, s, store.Entry{Key: "a", Value: []byte("3"), Created: r4, Modified: r4})
}

func list(t *testing.T, s store.Store) {
	commit(t, s, store.Put("p/b", []byte("2")), store.Put("p/a", []byte("1")), store.Put("p0", nil), store.Put("o", nil))
	revision := commit(t, s, store.Put("p/\xff", nil), store.Put("\xff\xff", nil), store.Put("\xff\xffz", nil))
	for prefix, want := range map[string][]string{
		"p/":       {"p/a", "p/b", "p/\xff"},
		"p/\xff":   {"p/\xff"},
		"\xff\xff": {"\xff\xff", "\xff\xffz"},
		"none":     nil,
		"":         {"o", "p/a", "p/b", "p/\xff", "p0", "\xff\xff", "\xff\xffz"},
	} {
		entries, at, err := s.List(t.Context(), prefix)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range entries {
			got = append(got, e.Key)
		}
		if !slices.Equal(got, want) || at != revision {
			t.Errorf("list %q: got %q at revision %d, want %q at %d", prefix, got, at, want, revision)
		}
	}
}

func conditions(t *testing.T, s store.Store) {
	revision := commit(t, s, store.Put("a", []byte("1")))
	for _, bad := range [][]store.Cond{
		{{Key: "a"}},
		{{Key: "a", Modified: revision + 1}},
		{{Key: "absent", Modified: revision}},
		{{Key: "a", Modified: revision}, {Key: "a"}},
	} {
		_, err := s.Commit(t.Context(), store.Txn{If: bad, Then: []store.Op{store.Put("a", []byte("x")), store.Put("x", nil)}})
		if !errors.Is(err, store.ErrConflict) {
			t.Errorf("condition %v: got %v, want ErrConflict", bad, err)
		}
	}
	wantEntry(t, s, store.Entry{Key: "a", Value: []byte("1"), Created: revision, Modified: revision})
	wantAbsent(t, s, "x")
	next, err := s.Commit(t.Context(), store.Txn{
		If:   []store.Cond{{Key: "a", Modified: revision}, {Key: "absent"}},
		Then: []store.Op{store.Put("a", []byte("2"))},
	})
	if err != nil || next != revision+1 {
		t.Fatalf("got revision %d, %v, want %d", next, err, revision+1)
	}
}

func refusals(t *testing.T, s store.Store) {
	if _, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put("a", nil), store.Delete("a")}}); err == nil {
		t.Error("a key changed twice in one transaction: want an error")
	}
	if _, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put("b", nil), {Key: "a", Lease: 4711}}}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("put with a lease that is not there: got %v, want ErrNotFound", err)
	}
	wantAbsent(t, s, "a")
	wantAbsent(t, s, "b")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Commit(ended, store.Txn{Then: []store.Op{store.Put("a", nil)}}); !errors.Is(err, context.Canceled) {
		t.Errorf("commit in an ended context: got %v, want context.Canceled", err)
	}
	wantAbsent(t, s, "a")
}

// counter checks that no change is lost if several writers compete with compare and swap.
func counter(t *testing.T, s store.Store) {
	const writers, each = 4, 10
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for done := 0; done < each; {
				e, err := s.Get(t.Context(), "n")
				if err != nil && !errors.Is(err, store.ErrNotFound) {
					t.Error(err)
					return
				}
				n, _ := strconv.Atoi(string(e.Value))
				_, err = s.Commit(t.Context(), store.Txn{
					If:   []store.Cond{{Key: "n", Modified: e.Modified}},
					Then: []store.Op{store.Put("n", []byte(strconv.Itoa(n+1)))},
				})
				if err == nil {
					done++
				} else if !errors.Is(err, store.ErrConflict) {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	e, err := s.Get(t.Context(), "n")
	if err != nil || string(e.Value) != strconv.Itoa(writers*each) {
		t.Fatalf("got %q, %v, want %d", e.Value, err, writers*each)
	}
}

// deadline returns a context that limits how long a test waits for an expected event.
func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
	t.Cleanup(cancel)
	return ctx
}

// take returns the next n changes.
func take(t *testing.T, s store.Store, prefix string, after int64, n int) (events []store.Event) {
	t.Helper()
	for e, err := range s.Watch(deadline(t), prefix, after) {
		if err != nil {
			t.Fatal(err)
		}
		if events = append(events, e); len(events) == n {
			return events
		}
	}
	t.Fatalf("got %d changes %v, want %d", len(events), events, n)
	return nil
}
