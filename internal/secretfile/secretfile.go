// Package secretfile reads files that contain secrets, and refuses files that other accounts can
// read. It also protects the memory of processes that hold keys.
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

// ReadFile reads a file that contains a secret. If Check refuses the file, ReadFile returns the
// error of Check.
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

// RefuseTree returns an error if path is inside a git work tree or a flake. A private key must not
// be stored there, because the next commit would publish it, and Nix would copy it to its store,
// which all accounts can read. The file need not exist.
func RefuseTree(path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	for dir := abs; ; dir = filepath.Dir(dir) {
		// Follow symbolic links to the place where the key really is.
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

// Check returns an error if other accounts may be able to read an open file that contains a secret,
// because of its mode or because it is in the Nix store. It always accepts a systemd credential of
// this unit, whose mode can look as if its group could read it.
func Check(f *os.File) error {
	// The kernel returns the path of the open file, without symbolic links.
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
