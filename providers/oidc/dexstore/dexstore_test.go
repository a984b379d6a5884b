package dexstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dexidp/dex/storage"
	"github.com/dexidp/dex/storage/conformance"

	"github.com/florete/florete/providers/oidc/dexstore"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
)

func open(t *testing.T) (store.Store, *dexstore.Store) {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "state.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	key, err := sealedstore.New(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return db, dexstore.New(db, key)
}

func empty(t *testing.T) storage.Storage {
	_, s := open(t)
	return s
}

func TestConformance(t *testing.T) { conformance.RunTests(t, empty) }

func TestConformanceOfTransactions(t *testing.T) { conformance.RunTransactionTests(t, empty) }

// An authorization code can be exchanged once, whoever comes at the same time.
func TestOneDeleteWins(t *testing.T) {
	_, s := open(t)
	if err := s.CreateAuthCode(t.Context(), storage.AuthCode{ID: "code"}); err != nil {
		t.Fatal(err)
	}
	results := make(chan error, 8)
	var all sync.WaitGroup
	for range cap(results) {
		all.Go(func() { results <- s.DeleteAuthCode(t.Context(), "code") })
	}
	all.Wait()
	close(results)
	won := 0
	for err := range results {
		switch err {
		case nil:
			won++
		case storage.ErrNotFound:
		default:
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d deletes succeeded, want 1", won)
	}
}

// Two sign-ins of one user at the same time both leave their refresh token.
func TestUpdatesAddUp(t *testing.T) {
	_, s := open(t)
	ctx := t.Context()
	if err := s.CreateOfflineSessions(ctx, storage.OfflineSessions{
		UserID: "u", ConnID: "local", Refresh: map[string]*storage.RefreshTokenRef{},
	}); err != nil {
		t.Fatal(err)
	}
	nested := false
	err := s.UpdateOfflineSessions(ctx, "u", "local", func(o storage.OfflineSessions) (storage.OfflineSessions, error) {
		if !nested {
			nested = true
			if err := s.UpdateOfflineSessions(ctx, "u", "local", func(o storage.OfflineSessions) (storage.OfflineSessions, error) {
				o.Refresh["b"] = &storage.RefreshTokenRef{ID: "b"}
				return o, nil
			}); err != nil {
				t.Error(err)
			}
		}
		o.Refresh["a"] = &storage.RefreshTokenRef{ID: "a"}
		return o, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	o, err := s.GetOfflineSessions(ctx, "u", "local")
	if err != nil || o.Refresh["a"] == nil || o.Refresh["b"] == nil {
		t.Errorf("session is %+v, %v, want both refresh tokens", o, err)
	}
}

// Neither keys nor values tell a code, and a value opens at its own key only.
func TestSealed(t *testing.T) {
	db, s := open(t)
	ctx := t.Context()
	for _, id := range []string{"code-in-clear", "other"} {
		if err := s.CreateAuthCode(ctx, storage.AuthCode{ID: id, Nonce: "nonce-in-clear"}); err != nil {
			t.Fatal(err)
		}
	}
	entries, _, err := db.List(ctx, "")
	if err != nil || len(entries) != 2 {
		t.Fatalf("%d entries, %v, want 2", len(entries), err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Key, "oidc/dex/code/") || strings.Contains(e.Key+string(e.Value), "in-clear") {
			t.Errorf("%s: %q", e.Key, e.Value)
		}
	}
	swapped := store.Txn{Then: []store.Op{store.Put(entries[0].Key, entries[1].Value), store.Put(entries[1].Key, entries[0].Value)}}
	if _, err := db.Commit(ctx, swapped); err != nil {
		t.Fatal(err)
	}
	if c, err := s.GetAuthCode(ctx, "other"); err == nil || err == storage.ErrNotFound {
		t.Errorf("a value moved to another key reads as %+v, %v", c, err)
	}
}

// The parts of an id do not run into each other.
func TestIDsOfTwoParts(t *testing.T) {
	_, s := open(t)
	if err := s.CreateOfflineSessions(t.Context(), storage.OfflineSessions{UserID: "ab", ConnID: "c"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.GetOfflineSessions(t.Context(), "a", "bc"); err != storage.ErrNotFound {
		t.Errorf("error is %v, want %v", err, storage.ErrNotFound)
	}
}

// paged is a store whose readers hold a few entries at a time.
type paged struct {
	store.Store
	t *testing.T
}

func (p paged) List(_ context.Context, prefix string) ([]store.Entry, int64, error) {
	p.t.Errorf("all of %s are read at once", prefix)
	return nil, 0, errors.New("too many")
}

func (p paged) Page(ctx context.Context, prefix, after string, most int) ([]store.Entry, error) {
	if most > 50 {
		p.t.Errorf("%d of %s are read at once", most, prefix)
	}
	return p.Store.Page(ctx, prefix, after, most)
}

// Refresh tokens that Dex refuses for their age are gone.
func TestExpireRefresh(t *testing.T) {
	_, s := open(t)
	day := func(n int) time.Time { return time.Unix(1_784_011_430, 0).AddDate(0, 0, n).UTC() }
	for _, r := range []storage.RefreshToken{
		{ID: "used", CreatedAt: day(0), LastUsed: day(29)}, {ID: "idle", CreatedAt: day(0), LastUsed: day(1)}, {ID: "old", CreatedAt: day(-70), LastUsed: day(29)},
	} {
		if err := s.CreateRefresh(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.ExpireRefresh(t.Context(), day(2), day(-60)); err != nil {
		t.Fatal(err)
	}
	if left, err := s.ListRefreshTokens(t.Context()); err != nil || len(left) != 1 || left[0].ID != "used" {
		t.Errorf("left %+v, %v", left, err)
	}
}

// However many records there are, and of whatever length, few are in memory at a time.
func TestCollectsInPages(t *testing.T) {
	db, _ := open(t)
	key, err := sealedstore.New(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	s := dexstore.New(paged{db, t}, key)
	ctx := t.Context()
	now := time.Now()
	const old = 150
	for i := range old {
		if err := s.CreateAuthRequest(ctx, storage.AuthRequest{ID: fmt.Sprint(i), Expiry: now.Add(-time.Second)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.CreateAuthRequest(ctx, storage.AuthRequest{ID: "live", Expiry: now.Add(time.Second)}); err != nil {
		t.Fatal(err)
	}
	if r, err := s.GarbageCollect(ctx, now); err != nil || r.AuthRequests != old {
		t.Errorf("collected %+v, %v, want %d requests", r, err, old)
	}
	if _, err := s.GetAuthRequest(ctx, "live"); err != nil {
		t.Error(err)
	}
}
