package oidc

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dexidp/dex/storage"

	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store/sqlite"
)

// Over a day, keys are rotated, old keys still verify, and codes that were not exchanged are
// deleted. The bubble fails if a goroutine outlives its context.
func TestUpkeep(t *testing.T) {
	f := &fixture{t: t}
	f.grant(callback)
	synctest.Test(t, func(t *testing.T) {
		db := must(sqlite.Open(filepath.Join(t.TempDir(), "state.db"), sqlite.Options{}))
		defer db.Close()
		p := New(Config{
			Store: db, Key: must(sealedstore.New(bytes.Repeat([]byte{1}, 32))),
			Policy: f.inForce, Revoked: f.revoked.Load, Listen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler),
			Audit: server.NewAudit(db, slog.New(slog.DiscardHandler)),
		})
		ctx, cancel := context.WithCancel(t.Context())
		s, err := p.newIssuer(ctx, f.inForce(), nil)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { s.upkeep(ctx); close(ended) }()
		defer func() { cancel(); <-ended }()

		first := must(s.signer.ValidationKeys(ctx))
		if err := s.storage.CreateAuthCode(ctx, storage.AuthCode{ID: "left"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(codesLive - time.Minute)
		if _, err := s.storage.GetAuthCode(ctx, "left"); err != nil {
			t.Errorf("code that may still be exchanged: %v", err)
		}
		time.Sleep(time.Minute + upkeepEvery + time.Second)
		if _, err := s.storage.GetAuthCode(ctx, "left"); err != storage.ErrNotFound {
			t.Errorf("code that was left: error is %v, want %v", err, storage.ErrNotFound)
		}
		time.Sleep(24 * time.Hour)
		keys := must(s.signer.ValidationKeys(ctx))
		if len(keys) != 2 || keys[0].KeyID == first[0].KeyID || keys[1].KeyID != first[0].KeyID {
			t.Errorf("%d keys verify after a day, want a new one and the first", len(keys))
		}
	})
}
