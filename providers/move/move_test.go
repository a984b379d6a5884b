package move_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/providers/move"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/etcdtest"
	"github.com/florete/florete/tests/kit/providertest"
)

var state = server.State{
	Remembered: []string{"kept/"},
	Ending:     map[string]time.Duration{"ends/": time.Minute, "held/": 0},
}

func file(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func commit(t *testing.T, s store.Store, ops ...store.Op) {
	t.Helper()
	if _, err := s.Commit(t.Context(), store.Txn{Then: ops}); err != nil {
		t.Fatal(err)
	}
}

// fill makes a state that takes several transactions, with its sealing key.
func fill(t *testing.T, s store.Store) (secret []byte) {
	t.Helper()
	secret = sealedstore.Secret()
	key, err := sealedstore.New(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := key.Bind(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	lease, err := s.Lease(t.Context(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	commit(t, s, store.Op{Key: "ends/1", Value: []byte("used"), Lease: lease}, store.Op{Key: "held/1", Lease: lease})
	for i := range 12 {
		var ops []store.Op
		for n := range store.MaxOps {
			ops = append(ops, store.Put(fmt.Sprintf("kept/%d/%03d", i, n), []byte("one")))
		}
		commit(t, s, ops...)
	}
	return secret
}

func device(t *testing.T, name string) (document.Device, []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	public := kit.Authorized(kit.WriteHostKey(path))
	pem, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return document.Device{ID: kit.ID("node/" + name), SSHHostKey: public}, pem
}

// same checks that a tree has what a file has, but for what does not move.
func same(t *testing.T, from, to store.Store) {
	t.Helper()
	list := func(s store.Store) map[string]string {
		entries, _, err := s.List(context.Background(), "")
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, e := range entries {
			if !strings.HasPrefix(e.Key, "state/") && !strings.HasPrefix(e.Key, "held/") && !strings.HasPrefix(e.Key, server.AuditPrefix) && e.Key != sealedstore.RingAt {
				all[e.Key] = string(e.Value)
			}
		}
		return all
	}
	want, got := list(from), list(to)
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s is %q, want %q", k, got[k], v)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d keys, want %d", len(got), len(want))
	}
}

// TestMove checks that a state moves with its sealing key while it is changed, even if the move is
// killed at any moment, and that nobody changes the file afterwards.
func TestMove(t *testing.T) {
	etcd := etcdtest.Start(t, 1)
	path := filepath.Join(t.TempDir(), "state.db")
	from, other := file(t, path), file(t, path)
	secret := fill(t, from)
	a, pem := device(t, "a")
	to := &providertest.Faulty{Store: etcd.Open(t)}
	m := move.Move{File: from, To: to, Host: "a", Kind: "cert", State: state, Secret: secret, Named: sealedstore.RingReplicas{Replicas: []document.Device{a}},
		Opened: func(k sealedstore.RingKeys) error {
			if len(k.Secrets) != 1 || !bytes.Equal(k.Secrets[0], secret) {
				t.Errorf("the keyring does not begin with the key of the file")
			}
			return nil
		}}
	killed := errors.New("killed")
	run := func(before bool, at int) error {
		n := 0
		var arm func()
		arm = func() {
			if n++; n < at {
				to.Meanwhile(arm)
			} else if before {
				to.Fail(killed)
			} else {
				to.Lose(killed)
			}
		}
		arm()
		return m.Run(t.Context())
	}
	for at := 4; at >= 1; at-- {
		for _, before := range []bool{true, false} {
			if err := run(before, at); !errors.Is(err, killed) {
				t.Fatalf("killed at transaction %d: %v", at, err)
			}
			if at%2 == 0 { // what comes and goes meanwhile
				commit(t, from, store.Delete(fmt.Sprintf("kept/0/%03d", at)), store.Put(fmt.Sprintf("kept/1/%03d", at), []byte("two")))
			}
		}
	}
	if mark, err := move.Under(t.Context(), to); err != nil || mark.Host != "a" {
		t.Errorf("it is not recorded that the tree is not whole: %+v, %v", mark, err)
	}

	// It goes on while another process changes the file, until that is refused.
	var changing sync.WaitGroup
	accepted, began := 0, make(chan struct{})
	changing.Go(func() {
		for i := 0; ; i++ {
			_, err := other.Commit(context.Background(), store.Txn{Then: []store.Op{store.Put(fmt.Sprintf("kept/new/%05d", i), []byte("new"))}})
			if i == 20 {
				close(began)
			}
			if err != nil {
				if !errors.Is(err, store.ErrMoved) || !errors.Is(err, store.ErrUnavailable) {
					t.Errorf("a change of what has moved: %v", err)
				}
				return
			}
			accepted++
		}
	})
	<-began
	rounds := 0
	m.Copied = func(int) { rounds++ }
	if err := m.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if rounds > 20 {
		t.Errorf("%d comparisons: a file that changes without a pause must be frozen after a few", rounds)
	}
	changing.Wait()
	same(t, other, to)
	if e, err := to.Get(t.Context(), fmt.Sprintf("kept/new/%05d", accepted-1)); err != nil {
		t.Errorf("the last that was accepted: %v, %v", e, err)
	}
	ring, err := sealedstore.ReadRing(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := ring.Open(pem)
	if err != nil {
		t.Fatal(err)
	}
	key, err := keys.Key()
	if err == nil {
		err = key.Bind(t.Context(), to)
	}
	if err != nil {
		t.Errorf("what the file's key sealed: %v", err)
	}
	for _, s := range []store.Store{from, to} {
		if mark, err := move.Of(t.Context(), s); err != nil || mark.Host != "a" {
			t.Errorf("%+v, %v", mark, err)
		}
	}
	if mark, err := move.Under(t.Context(), to); err != nil || mark.Host != "" {
		t.Errorf("%+v, %v", mark, err)
	}
	// What goes on in the tree is not undone by the file.
	commit(t, to, store.Delete("kept/3/000"))
	if err := m.Run(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := to.Get(t.Context(), "kept/3/000"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("it is back: %v", err)
	}
	// Where the tree is lost, an older state does not take its place.
	m.To = etcd.Open(t)
	if err := m.Run(t.Context()); !errors.Is(err, move.ErrLost) {
		t.Errorf("got %v", err)
	}
}

// TestKilledWhenFrozen checks that a move that was killed between freezing the file and marking the
// tree is completed by the next.
func TestKilledWhenFrozen(t *testing.T) {
	etcd := etcdtest.Start(t, 1)
	from := file(t, filepath.Join(t.TempDir(), "state.db"))
	a, _ := device(t, "a")
	to := &providertest.Faulty{Store: etcd.Open(t)}
	m := move.Move{File: from, To: to, Host: "a", Kind: "cert", State: state, Secret: fill(t, from), Named: sealedstore.RingReplicas{Replicas: []document.Device{a}},
		Opened: func(sealedstore.RingKeys) error { return nil }}
	killed := errors.New("killed")
	last := m
	last.Copied = func(n int) {
		if n == 0 { // the comparison of the frozen file
			to.Fail(killed)
		}
	}
	commitsLate := 0
	m.Copied = func(int) { commitsLate++ }
	if err := last.Run(t.Context()); !errors.Is(err, killed) {
		t.Fatalf("got %v", err)
	}
	if mark, err := move.Of(t.Context(), from); err != nil || mark.Host != "a" {
		t.Fatalf("the file is not frozen: %+v, %v", mark, err)
	}
	if mark, err := move.Of(t.Context(), to); err != nil || mark.Host != "" {
		t.Fatalf("the tree is whole: %+v, %v", mark, err)
	}
	if err := m.Run(t.Context()); err != nil || commitsLate != 1 {
		t.Fatalf("%d comparisons, %v", commitsLate, err)
	}
	same(t, from, to)
}

// TestInUse checks that a tree with another state is left unchanged, and so is the file.
func TestInUse(t *testing.T) {
	etcd := etcdtest.Start(t, 1)
	from := file(t, filepath.Join(t.TempDir(), "state.db"))
	a, _ := device(t, "a")
	b, _ := device(t, "b")
	secret := fill(t, from)
	for name, prepare := range map[string]func(to store.Store) error{
		"a new one": func(to store.Store) error {
			_, err := sealedstore.MakeRing(t.Context(), to, sealedstore.RingReplicas{Replicas: []document.Device{b}}, sealedstore.Secret())
			return err
		},
		"moved":  func(to store.Store) error { return move.Nothing(t.Context(), to, "b") },
		"moving": func(to store.Store) error { return prepareMoving(t, to, b) },
	} {
		to := etcd.Open(t)
		if err := prepare(to); err != nil {
			t.Fatal(err)
		}
		m := move.Move{File: from, To: to, Host: "a", Kind: "cert", State: state, Secret: secret, Named: sealedstore.RingReplicas{Replicas: []document.Device{a}},
			Opened: func(sealedstore.RingKeys) error { return nil }}
		if err := m.Run(t.Context()); !errors.Is(err, move.ErrInUse) {
			t.Errorf("%s: got %v", name, err)
		}
		if entries, _, err := to.List(t.Context(), "kept/"); err != nil || len(entries) != 0 {
			t.Errorf("%s: %d keys were copied, %v", name, len(entries), err)
		}
		commit(t, from, store.Put("kept/still", nil))
	}
}

// prepareMoving leaves a move of another host unfinished.
func prepareMoving(t *testing.T, to store.Store, b document.Device) error {
	from := file(t, filepath.Join(t.TempDir(), "state.db"))
	stop := errors.New("stop")
	err := move.Move{File: from, To: to, Host: "b", Secret: fill(t, from), Named: sealedstore.RingReplicas{Replicas: []document.Device{b}},
		Opened: func(sealedstore.RingKeys) error { return stop }}.Run(t.Context())
	if !errors.Is(err, stop) {
		return fmt.Errorf("got %v", err)
	}
	return nil
}
