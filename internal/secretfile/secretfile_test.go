package secretfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/florete/florete/internal/secretfile"
)

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "secret")
	if err := os.WriteFile(path, []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for mode, ok := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o640: false, 0o604: false, 0o620: false, 0o601: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		b, err := secretfile.ReadFile(link)
		switch {
		case ok && (err != nil || string(b) != "s"):
			t.Errorf("mode %v: got %q, %v", mode, b, err)
		case !ok && (err == nil || !strings.HasPrefix(err.Error(), path+": mode ") || !strings.HasSuffix(err.Error(), "lets others use a secret: chmod 0600 it")):
			t.Errorf("mode %v: got %v", mode, err)
		}
	}
}

// TestStore checks that a secret in the Nix store is refused, even through a symbolic link. It
// needs a Nix store.
func TestStore(t *testing.T) {
	found, err := filepath.Glob("/nix/store/*")
	if err != nil || len(found) == 0 {
		t.Skip("NOT RUN: this machine has no Nix store")
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(found[0], link); err != nil {
		t.Fatal(err)
	}
	if _, err := secretfile.ReadFile(link); err == nil || !strings.Contains(err.Error(), "a secret in the Nix store, which everybody can read") {
		t.Errorf("got %v", err)
	}
}

// TestCredential checks that a systemd credential is accepted. systemd may grant access to it with
// an ACL, which looks like read permission for the group.
func TestCredential(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CREDENTIALS_DIRECTORY", dir)
	if err := os.Mkdir(filepath.Join(dir, "deeper"), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, ok := range map[string]bool{filepath.Join(dir, "users"): true, filepath.Join(dir, "deeper/users"): false, filepath.Join(t.TempDir(), "users"): false} {
		if err := os.WriteFile(path, []byte("s"), 0o440); err != nil {
			t.Fatal(err)
		}
		if _, err := secretfile.ReadFile(path); (err == nil) != ok {
			t.Errorf("%s: %v", path, err)
		}
	}
}
