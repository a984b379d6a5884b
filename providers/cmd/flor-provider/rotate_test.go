package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/providers/cert"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/settings"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
	"github.com/florete/florete/tests/kit"
)

// TestRotateAfterLateWrites checks that secrets that a replica sealed with the former key, while
// others rotated, are sealed again by the next rotation, which drops that key. A secret that nobody
// can open does not prevent this.
func TestRotateAfterLateWrites(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	must(os.MkdirAll(filepath.Join(dir, "cert"), 0o700))
	db, err := sqlite.Open(filepath.Join(dir, "state.db"), sqlite.Options{})
	must(err)
	defer db.Close()
	device := document.Device{ID: kit.ID("node/a"), SSHHostKey: kit.Authorized(kit.WriteHostKey(filepath.Join(dir, "ssh_host_ed25519_key")))}
	s := state{Settings: &settings.Settings{Common: settings.Common{State: dir}, Section: &cert.Settings{}},
		policy: document.Policy{Store: &document.SharedStore{Replicas: map[string][]document.Device{"cert": {device}}}}}
	keys, err := sealedstore.MakeRing(t.Context(), db, s.named("cert"), sealedstore.Secret())
	must(err)
	key := func(k sealedstore.RingKeys) *sealedstore.Key {
		t.Helper()
		key, err := k.Key()
		must(err)
		return key
	}
	must(key(keys).Bind(t.Context(), db))
	rotate := func() (sealedstore.RingKeys, error) {
		t.Helper()
		ring, err := sealedstore.ReadRing(t.Context(), db)
		must(err)
		ring.Made = ring.Made.Add(-time.Minute)
		failed := s.rotate(t.Context(), db, "cert", ring, keys)
		b, err := os.ReadFile(opened(s.Dir("cert")))
		must(err)
		var now sealedstore.RingKeys
		must(strictjson.Decode(b, &now))
		return now, failed
	}
	write := func(at string, k *sealedstore.Key) {
		t.Helper()
		value := kit.JSON(map[string]any{"key": at, "generation": 1, "expires": 0, "answer": k.Seal(at, []byte("{}"))})
		_, err := db.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(at, value)}})
		must(err)
	}
	readable := func(at string, k *sealedstore.Key) error {
		t.Helper()
		e, err := db.Get(t.Context(), at)
		must(err)
		var r struct {
			Answer []byte `json:"answer"`
		}
		must(json.Unmarshal(e.Value, &r))
		_, err = k.Open(at, r.Answer)
		return err
	}

	keys, err = rotate()
	must(err)
	before := key(keys)
	keys, err = rotate()
	must(err)
	const late, last = "answers/node/b/late", "answers/node/c/last"
	write(late, before)
	for range 2 {
		keys, err = rotate()
		must(err)
		if err := readable(late, key(keys)); err != nil {
			t.Fatalf("written late: %v", err)
		}
	}
	if !errors.Is(readable(late, before), sealedstore.ErrUnreadable) {
		t.Error("the key of before opens what was sealed anew")
	}

	const lost = "answers/node/a/lost"
	foreign, err := sealedstore.New(sealedstore.Secret())
	must(err)
	write(lost, foreign)
	write(last, key(keys))
	former := key(keys)
	keys, err = rotate()
	if !errors.Is(err, sealedstore.ErrUnreadable) || !strings.Contains(err.Error(), lost) {
		t.Errorf("with what nobody can open: got %v, want an error that names %s", err, lost)
	}
	for _, at := range []string{late, last} {
		if err := readable(at, key(keys)); err != nil {
			t.Error(err)
		}
		if readable(at, former) == nil {
			t.Errorf("%s is still sealed with the key of before", at)
		}
	}
}
