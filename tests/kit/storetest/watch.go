package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/florete/florete/providers/store"
)

func watch(t *testing.T, s store.Store) {
	r1 := commit(t, s, store.Put("w/a", []byte("1")), store.Put("other", nil))
	want := fmt.Sprint([]store.Event{{Entry: store.Entry{Key: "w/a", Value: []byte("1"), Created: r1, Modified: r1}}})
	if got := fmt.Sprint(take(t, s, "w/", r1-1, 1)); got != want {
		t.Fatalf("from the start: got %s, want %s", got, want)
	}
	r2 := commit(t, s, store.Delete("w/a"))
	want = fmt.Sprint([]store.Event{{Entry: store.Entry{Key: "w/a", Modified: r2}, Deleted: true}})
	if got := fmt.Sprint(take(t, s, "w/", r1, 1)); got != want {
		t.Fatalf("after the first: got %s, want the deletion %s", got, want)
	}
	r3 := commit(t, s, store.Put("w/a", []byte("2")))
	r4 := commit(t, s, store.Put("w/a", []byte("3")))
	want = fmt.Sprint([]store.Event{{Entry: store.Entry{Key: "w/a", Value: []byte("3"), Created: r3, Modified: r4}}})
	for e, err := range s.Watch(deadline(t), "w/", r1-1) { // perhaps what was undone before it
		if err != nil {
			t.Fatal(err)
		}
		if e.Modified == r4 {
			if got := fmt.Sprint([]store.Event{e}); got != want {
				t.Fatalf("the last of a key: got %s, want %s", got, want)
			}
			break
		}
	}
	r2 = r4
	live := make(chan store.Event)
	go func() {
		defer close(live)
		for e, err := range s.Watch(deadline(t), "w/", r2) {
			if err != nil {
				return
			}
			live <- e
		}
	}()
	for i := range 5 {
		commit(t, s, store.Put("unseen", nil))
		key := fmt.Sprintf("w/%d", i)
		commit(t, s, store.Put(key, nil))
		if e := <-live; e.Key != key || e.Deleted {
			t.Fatalf("live: got %v, want a put of %s", e, key)
		}
	}
}

// watchOrder checks the order of more changes than any engine reads at once, made in one
// transaction and in many.
func watchOrder(t *testing.T, s store.Store) {
	const n = 2500
	var ops []store.Op
	for i := range n {
		ops = append(ops, store.Put(fmt.Sprintf("w/%05d", i), nil))
	}
	var first int64
	for i := 0; i < n; i += 100 {
		if r := commit(t, s, ops[i:i+100]...); i == 0 {
			first = r
		}
	}
	last := int64(0)
	seen := map[string]bool{}
	for _, e := range take(t, s, "w/", first-1, n) {
		if e.Modified < last {
			t.Fatalf("revision %d after %d", e.Modified, last)
		}
		last = e.Modified
		seen[e.Key] = true
	}
	if len(seen) != n {
		t.Fatalf("got %d different keys, want %d", len(seen), n)
	}
}

func watchClosed(t *testing.T, s store.Store) {
	revision := commit(t, s, store.Put("a", nil))
	ended := make(chan error)
	go func() {
		var last error
		for _, err := range s.Watch(deadline(t), "", revision-1) {
			last = err
			if err == nil {
				ended <- nil
			}
		}
		ended <- last
	}()
	<-ended
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("a watch of a closed store ended without an error")
	}
}

func compaction(t *testing.T, s store.Store) {
	c, ok := s.(Compacter)
	if !ok {
		t.Skip("this engine compacts by itself")
	}
	r1 := commit(t, s, store.Put("a", []byte("1")))
	r2 := commit(t, s, store.Put("a", []byte("2")))
	if err := c.Compact(t.Context(), r1); err != nil {
		t.Fatal(err)
	}
	for _, err := range s.Watch(deadline(t), "a", r1-1) {
		if !errors.Is(err, store.ErrCompacted) {
			t.Errorf("watch from before: got %v, want ErrCompacted", err)
		}
	}
	if got := take(t, s, "a", r1, 1); got[0].Modified != r2 {
		t.Errorf("watch from what is kept: got %v, want revision %d", got, r2)
	}
	wantEntry(t, s, store.Entry{Key: "a", Value: []byte("2"), Created: r1, Modified: r2})
}

func leaseEnds(t *testing.T, s store.Store) {
	id, revision := leased(t, s)
	if e := take(t, s, "", revision, 1)[0]; e.Key != "leased" || !e.Deleted {
		t.Fatalf("got %v, want the deletion of the leased key", e)
	}
	wantAbsent(t, s, "leased")
	if err := s.KeepAlive(t.Context(), id); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("KeepAlive of an ended lease: got %v, want ErrNotFound", err)
	}
	commit(t, s, store.Put("leased", nil)) // absent again for conditions too
	if _, err := s.Get(t.Context(), "kept"); err != nil {
		t.Error(err)
	}
}

// leased makes a key with a short lease. If a slow disk did not let it use the lease in time, it
// makes a longer lease.
func leased(t *testing.T, s store.Store) (id store.LeaseID, revision int64) {
	t.Helper()
	for ttl := time.Second; ; ttl *= 2 {
		id, err := s.Lease(t.Context(), ttl)
		if err != nil {
			t.Fatal(err)
		}
		revision, err = s.Commit(t.Context(), store.Txn{Then: []store.Op{{Key: "leased", Lease: id}, store.Put("kept", nil)}})
		if err == nil {
			err = s.KeepAlive(t.Context(), id)
		}
		if err == nil {
			return id, revision
		}
		if !errors.Is(err, store.ErrNotFound) || ttl > time.Minute {
			t.Fatal(err)
		}
	}
}

func leaseRevoke(t *testing.T, s store.Store) {
	id, err := s.Lease(t.Context(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	commit(t, s, store.Op{Key: "leased", Lease: id})
	if err := s.Revoke(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	wantAbsent(t, s, "leased")
	if err := s.Revoke(t.Context(), id); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("second Revoke: got %v, want ErrNotFound", err)
	}
}

// leaseMoves checks that a leased key that is set again without the lease is no longer deleted with
// the lease.
func leaseMoves(t *testing.T, s store.Store) {
	id, err := s.Lease(t.Context(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	commit(t, s, store.Op{Key: "a", Lease: id})
	commit(t, s, store.Put("a", nil))
	if err := s.Revoke(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}

// fencing checks that a holder that slept while its lease ended can change nothing after another
// holder has taken its place.
func fencing(t *testing.T, s store.Store) {
	hold := func() (store.LeaseID, int64) {
		id, err := s.Lease(t.Context(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		token, err := s.Commit(t.Context(), store.Txn{If: []store.Cond{{Key: "lock"}}, Then: []store.Op{{Key: "lock", Lease: id}}})
		if err != nil {
			t.Fatal(err)
		}
		return id, token
	}
	act := func(token int64) error {
		_, err := s.Commit(t.Context(), store.Txn{If: []store.Cond{{Key: "lock", Modified: token}}, Then: []store.Op{store.Put("a", nil)}})
		return err
	}
	first, old := hold()
	if err := act(old); err != nil {
		t.Fatal(err)
	}
	if err := s.Revoke(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if err := act(old); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a holder whose lease has ended: got %v, want ErrConflict", err)
	}
	_, token := hold()
	if err := act(old); !errors.Is(err, store.ErrConflict) || token <= old {
		t.Errorf("a holder that was followed by another: got %v with token %d after %d, want ErrConflict and a higher token", err, token, old)
	}
	if err := act(token); err != nil {
		t.Error(err)
	}
}

// largest checks that an engine accepts the largest transaction that all engines must accept, with
// the same number of conditions.
func largest(t *testing.T, s store.Store) {
	var txn store.Txn
	for i := range store.MaxOps {
		key := fmt.Sprint("key ", i)
		txn.If = append(txn.If, store.Cond{Key: key})
		txn.Then = append(txn.Then, store.Put(key, make([]byte, store.MaxBytes/store.MaxOps)))
	}
	if _, err := s.Commit(t.Context(), txn); err != nil {
		t.Error(err)
	}
}
