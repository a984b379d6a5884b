package store_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
)

func open(t *testing.T) store.Store {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "state.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// count adds one to the number at a key.
func count(e store.Entry) (store.Txn, error) {
	n, _ := strconv.Atoi(string(e.Value))
	return store.Txn{Then: []store.Op{store.Put("n", fmt.Append(nil, n+1))}}, nil
}

// TestUpdate checks that simultaneous changes are all kept, whether or not the key exists.
func TestUpdate(t *testing.T) {
	s := open(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 5 {
				if err := store.Update(t.Context(), s, "n", count); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if e, err := s.Get(t.Context(), "n"); err != nil || string(e.Value) != "20" {
		t.Errorf("got %s, %v, want 20", e.Value, err)
	}
	no := errors.New("no")
	if err := store.Update(t.Context(), s, "n", func(store.Entry) (store.Txn, error) { return store.Txn{}, no }); err != no {
		t.Errorf("got %v", err)
	}
	_, before, _ := s.List(t.Context(), "")
	if err := store.Update(t.Context(), s, "n", func(store.Entry) (store.Txn, error) { return store.Txn{}, nil }); err != nil {
		t.Error(err)
	}
	if _, now, _ := s.List(t.Context(), ""); now != before {
		t.Error("no operations changed the state")
	}
}

// TestUpdateBounded checks that Update gives up on a key that changes each time, and when its
// caller has gone.
func TestUpdateBounded(t *testing.T) {
	s := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	calls := 0
	other := func(e store.Entry) (store.Txn, error) {
		calls++
		if _, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put("n", fmt.Append(nil, "other", calls))}}); err != nil {
			t.Fatal(err)
		}
		return count(e)
	}
	if err := store.Update(ctx, s, "n", other); !errors.Is(err, store.ErrConflict) || calls != store.Attempts {
		t.Errorf("%d calls, %v", calls, err)
	}
	if e, err := s.Get(t.Context(), "n"); err != nil || string(e.Value) != fmt.Sprint("other", calls) {
		t.Errorf("got %s, %v", e.Value, err)
	}
	calls = 0
	err := store.Update(ctx, s, "n", func(e store.Entry) (store.Txn, error) { cancel(); return other(e) })
	if !errors.Is(err, context.Canceled) || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}
