package nss_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/florete/florete/internal/nss"
)

// TestPrivateKey checks that a key counts as private only if no other group and no other accounts
// can read it. The owner's own group may, as with the keys that OpenSSH creates on Fedora.
func TestPrivateKey(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	for mode, private := range map[os.FileMode]bool{0o600: true, 0o640: true, 0o604: false, 0o644: false} {
		if err := os.WriteFile(key, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(key, mode); err != nil {
			t.Fatal(err)
		}
		if err := nss.PrivateKey(key); (err == nil) != private {
			t.Errorf("%04o: %v", mode, err)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("only root gives files to other groups")
	}
	for _, mode := range []os.FileMode{0o640, 0o620} {
		if err := os.Chown(key, 0, 64001); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(key, mode); err != nil {
			t.Fatal(err)
		}
		if err := nss.PrivateKey(key); err == nil {
			t.Errorf("%04o of a foreign group is private", mode)
		}
	}
	if err := nss.PrivateKey(key + "x"); err != nil {
		t.Errorf("a key that is not there: %v", err)
	}
}
