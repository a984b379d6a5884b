package archive_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

// TestRestored checks that a restored version is kept and offered to no host until it or a newer
// version is published.
func TestRestored(t *testing.T) {
	from := newShop(t)
	old, newer := from.tree(1000, "old", "ursula", "forge"), from.tree(1001, "newer", "ursula", "forge")
	from.publish(from.tree(999, "oldest", "ursula", "forge"))
	from.publish(old)
	list := kit.Revocations(3, from.key, revocation.Target{Certificates: []string{"0a1b"}})
	if _, _, err := from.SetRevocations(t.Context(), list, archive.ListTerms{Cluster: "demo", Signers: from.keys()}); err != nil {
		t.Fatal(err)
	}
	for name, next := range map[string]struct {
		serial int64
		note   string
	}{"the same again": {1000, "old"}, "what is newer": {1001, "newer"}} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			s.key = from.key
			for _, key := range from.keysIn() {
				e, err := from.Get(t.Context(), key)
				if err != nil || !slices.ContainsFunc(archive.Remembered(), func(p string) bool { return strings.HasPrefix(key, p) }) {
					t.Fatal(key, err)
				}
				value, err := archive.Restored(key, e.Value)
				if err == nil {
					_, err = s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(key, value)}})
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if got := serials(t, s.Archive); !slices.Equal(got, []int64{1000, 999}) {
				t.Errorf("versions %v", got)
			}
			if r, err := s.Revocations(t.Context()); err != nil || r.Signed != list {
				t.Errorf("list %d, %v", r.Number, err)
			}
			if d, _, err := s.Documents(t.Context(), "ursula", ""); !errors.Is(err, archive.ErrRestored) || !errors.Is(err, archive.ErrNone) {
				t.Errorf("offered %v, %v", d, err)
			}
			_, _, err := s.Import(t.Context(), providertest.Stream(s.tree(999, "oldest", "ursula", "forge")), archive.Terms{Signers: s.keys(), Keep: 3})
			if err == nil || !strings.Contains(err.Error(), "serial 1000 is served, this is 999") {
				t.Errorf("an older one: %v", err)
			}
			if !s.publish(s.tree(next.serial, next.note, "ursula", "forge")) {
				t.Error("publishing changed nothing")
			}
			if next.serial == 1000 {
				s.want(old)
			} else {
				s.want(newer)
			}
			if s.publish(s.tree(next.serial, next.note, "ursula", "forge")) {
				t.Error("publishing the same twice changed something")
			}
		})
	}
}

// TestExclude checks that no import begins during a restore.
func TestExclude(t *testing.T) {
	s := newShop(t)
	imported := make(chan error, 1)
	err := s.Exclude(t.Context(), func(ctx context.Context, c store.Cond) error {
		go func() {
			_, _, err := s.Import(t.Context(), providertest.Stream(s.tree(1000, "", "ursula")), archive.Terms{Signers: s.keys(), Keep: 3})
			imported <- err
		}()
		select {
		case err := <-imported:
			t.Errorf("imported meanwhile: %v", err)
		case <-time.After(300 * time.Millisecond):
		}
		_, err := s.Commit(ctx, store.Txn{If: []store.Cond{c}, Then: []store.Op{store.Put("config/body/00/0000", nil)}})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-imported; err != nil {
		t.Error(err)
	}
}
