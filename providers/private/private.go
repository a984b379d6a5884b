// Package private reads files with secrets, and refuses those that others can read.
package private

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// ReadFile reads a secret file. It refuses one that group or others can read, and
// one in the Nix store, which everybody can read.
func ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(real, "/nix/store/") {
		return nil, fmt.Errorf("%s: a secret in the Nix store, which everybody can read: keep it in a file outside", path)
	}
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s: mode %04o lets others use a secret: chmod 0600 it", path, st.Mode().Perm())
	}
	return io.ReadAll(f)
}
