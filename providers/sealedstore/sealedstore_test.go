package sealedstore_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
)

func TestSeal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seal.key")
	k, err := sealedstore.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v, want 0600", st.Mode(), err)
	}
	sealed := k.Seal("here", []byte("secret"))
	if bytes.Contains(sealed, []byte("secret")) || bytes.Equal(sealed, k.Seal("here", []byte("secret"))) {
		t.Errorf("sealed: %q", sealed)
	}
	again, err := sealedstore.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := again.Open("here", sealed); err != nil || string(v) != "secret" {
		t.Errorf("got %q, %v", v, err)
	}
	if !bytes.Equal(k.Derive("a", 32), again.Derive("a", 32)) || bytes.Equal(k.Derive("a", 32), k.Derive("b", 32)) {
		t.Error("derived secrets are not by purpose")
	}
	other, err := sealedstore.Load(filepath.Join(t.TempDir(), "seal.key"))
	if err != nil {
		t.Fatal(err)
	}
	sealed[len(sealed)-1] ^= 1
	for name, open := range map[string]func() ([]byte, error){
		"changed":     func() ([]byte, error) { return k.Open("here", sealed) },
		"elsewhere":   func() ([]byte, error) { return k.Open("there", k.Seal("here", []byte("secret"))) },
		"another key": func() ([]byte, error) { return other.Open("here", k.Seal("here", []byte("secret"))) },
		"empty":       func() ([]byte, error) { return k.Open("here", nil) },
	} {
		if v, err := open(); err == nil || !strings.Contains(err.Error(), "does not open with this sealing key") {
			t.Errorf("%s: got %q, %v", name, v, err)
		}
	}
}

// TestKept checks that values that an earlier release sealed or derived stay readable.
func TestKept(t *testing.T) {
	k, err := sealedstore.New(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	const derived, sealed = "09858fef5f5935adaa938c12a6fcabd6", "10103f8e95353004b25e3a1a03b54e6f71886ee501095a40edbd958edc4a059d21"
	if got := hex.EncodeToString(k.Derive("purpose", 16)); got != derived {
		t.Errorf("derived %s, want %s", got, derived)
	}
	b, err := hex.DecodeString(sealed)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := k.Open("place", b); err != nil || string(v) != "value" {
		t.Errorf("got %q, %v", v, err)
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		length int
		mode   os.FileMode
		want   string
	}{
		"for others": {32, 0o644, "mode 0644 lets others use a secret"},
		"short":      {31, 0o600, "31 bytes, want 32"},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, make([]byte, c.length), c.mode); err != nil {
			t.Fatal(err)
		}
		if _, err := sealedstore.Load(path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want …%s…", name, err, c.want)
		}
	}
	if _, err := sealedstore.Load(filepath.Join(dir, "none", "seal.key")); err == nil || !strings.HasPrefix(err.Error(), "sealing key: ") {
		t.Errorf("no directory: got %v", err)
	}
}

// TestOf checks that each store has a separate key, and keeps it if it is put back in the place of
// another.
func TestOf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seal.key")
	open := func() store.Store {
		s, err := sqlite.Open(filepath.Join(t.TempDir(), "state.db"), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	derived := func(s store.Store) string {
		t.Helper()
		k, err := sealedstore.Of(t.Context(), path, s)
		if err != nil {
			t.Fatal(err)
		}
		return string(k.Derive("secret", 32))
	}
	first, second := open(), open()
	a := derived(first)
	if derived(first) != a {
		t.Error("another key after a restart")
	}
	b := derived(second)
	if a == b {
		t.Error("a new store has the key of the former one")
	}
	if derived(second) != b || derived(first) != a || derived(first) != a {
		t.Error("a store that is put back has another key")
	}
	third := open()
	c := derived(third)
	if c == a || c == b {
		t.Error("a third store has a former key")
	}
	if _, err := sealedstore.Of(t.Context(), path, second); err == nil || !strings.Contains(err.Error(), "not the one that this store was made with") {
		t.Errorf("got %v", err)
	}
}
