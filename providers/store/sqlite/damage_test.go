package sqlite_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
)

// TestGone checks that no write is acknowledged if the file is no longer at its path.
func TestGone(t *testing.T) {
	for name, lose := range map[string]func(path string) error{
		"deleted": os.Remove,
		"replaced": func(path string) error {
			if err := os.Rename(path, path+".old"); err != nil {
				return err
			}
			return os.WriteFile(path, nil, 0o600)
		},
	} {
		path := filepath.Join(t.TempDir(), "state.db")
		s := open(t, path, sqlite.Options{})
		put := func() error {
			_, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put("a", []byte("1"))}})
			return err
		}
		if err := errors.Join(put(), s.Gone()); err != nil {
			t.Fatal(err)
		}
		if err := lose(path); err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{put(), s.Gone()} {
			if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "florctl state restore") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestDamaged checks that errors of a damaged file name the file, and the command that continues
// from a backup.
func TestDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s := open(t, path, sqlite.Options{})
	for i := range 100 {
		ops := []store.Op{}
		for n := range 20 {
			ops = append(ops, store.Put(fmt.Sprintf("key/%d/%d", i, n), bytes.Repeat([]byte("x"), 500)))
		}
		if _, err := s.Commit(t.Context(), store.Txn{Then: ops}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil { // which empties the journal
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	whole := bytes.Clone(b)
	for at := 8 * page; at < len(b); at++ { // what the schema is read from stays
		b[at] = 0xa5
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	wants := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "then: florctl state restore") {
			t.Errorf("%s: %v", what, err)
		}
	}
	damaged, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer damaged.Close()
	_, err = damaged.Get(t.Context(), "key/50/1")
	wants("Get", err)
	_, _, err = damaged.List(t.Context(), "key/")
	wants("List", err)
	_, err = damaged.Page(t.Context(), "key/", "", 100)
	wants("Page", err)
	_, err = damaged.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put("key/50/1", []byte("1"))}})
	wants("Commit", err)

	copy(whole, "not a database")
	other := filepath.Join(t.TempDir(), "state.db")
	if err := os.WriteFile(other, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = sqlite.Open(other, sqlite.Options{}); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("Open: %v", err)
	}
}
