package oidc

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/florete/florete/providers/backup"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// TestRestoredOlderState checks that restoring an older state makes no old secret valid again, even
// if the sealing key was kept. Hosts get a new secret and continue.
func TestRestoredOlderState(t *testing.T) {
	f := newFixture(t)
	first := f.register(1)
	if err := f.signs(first); err != nil {
		t.Fatal(err)
	}
	remembers := server.StateOf(&Settings{}).Remembers
	var text bytes.Buffer
	if _, err := backup.Write(t.Context(), &text, backup.Header{}, []backup.Source{{Kind: Name, Store: f.db, Remembers: remembers}}); err != nil {
		t.Fatal(err)
	}
	call := f.call(1)
	call.Rotation = server.Rotation{Number: 1, Since: time.Now().Add(-overlap)}
	d, err := f.p.Answer(t.Context(), f.inForce(), call)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.db.Commit(t.Context(), store.Txn{If: d.If, Then: d.Then}); err != nil {
		t.Fatal(err)
	}
	second := d.Answer.Values
	refused(t, "the secret that was replaced", f.signs(first), "invalid_client")

	f.stop()
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.RemoveAll(filepath.Join(f.dir, "state.db"+suffix)); err != nil {
			t.Fatal(err)
		}
	}
	f.start()
	b, err := backup.Read(bytes.NewReader(text.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	put, _, err := backup.Restoring{Remembers: remembers}.Restore(t.Context(), f.db, b.Keys(Name))
	if err != nil || put == 0 {
		t.Fatalf("%d put back, %v", put, err)
	}
	for what, secret := range map[string]map[string]string{"the replaced secret": first, "the host's secret": second} {
		refused(t, what+" after a restore", f.signs(secret), "invalid_client")
	}
	third := f.register(1)
	if err := f.signs(third); err != nil {
		t.Errorf("the secret that the host gets: %v", err)
	}
	for _, key := range []string{"oidc/dex/keys/", "oidc/dex/refresh/", "seal/", "answers/", "oidc/spent/", "oidc/ended/"} {
		if remembers(key + "x") {
			t.Errorf("%s is remembered", key)
		}
	}
}
