// Package private reads files with secrets, and refuses those that others can read.
package private

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// ReadFile reads a secret file that Check lets pass.
func ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := Check(f); err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}

// Check refuses a secret file that group or others can use, and one in the Nix
// store, which everybody can read. A credential of this unit is the unit's alone,
// whatever its mode looks like: systemd may give access by an ACL.
func Check(f *os.File) error {
	// The kernel names the file that is open, whatever links led to it.
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return err
	}
	if strings.HasPrefix(path, "/nix/store/") {
		return fmt.Errorf("%s: a secret in the Nix store, which everybody can read: keep it in a file outside", path)
	}
	if dir := os.Getenv("CREDENTIALS_DIRECTORY"); dir != "" && filepath.Dir(path) == filepath.Clean(dir) {
		return nil
	}
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if st.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s: mode %04o lets others use a secret: chmod 0600 it", path, st.Mode().Perm())
	}
	return nil
}
