// Package secretfile reads files with secrets, and refuses those that others can read; it also keeps the memory
// of a process with keys from others.
package secretfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
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

// RefuseTree refuses a place for a private key inside a git work tree or a flake, from which
// the next commit publishes it and Nix copies it to where everybody can read it. Path need
// not exist.
func RefuseTree(path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	for dir := abs; ; dir = filepath.Dir(dir) {
		// A link leads to where the key really is.
		real, err := filepath.EvalSymlinks(dir)
		if errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
			continue
		}
		if err != nil {
			return err
		}
		return refuseBelow(path, real)
	}
}

func refuseBelow(path, dir string) error {
	for ; ; dir = filepath.Dir(dir) {
		for _, mark := range []string{".git", "flake.nix"} {
			if _, err := os.Lstat(filepath.Join(dir, mark)); err == nil {
				return fmt.Errorf("%s: a private key in the tree of %s, where the next commit would publish it: keep it outside", path, dir)
			}
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
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
