// Package private reads files with secrets, and refuses those that others can read.
package private

import (
	"fmt"
	"io"
	"os"
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
// store, which everybody can read.
func Check(f *os.File) error {
	// The kernel names the file that is open, whatever links led to it.
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return err
	}
	if strings.HasPrefix(path, "/nix/store/") {
		return fmt.Errorf("%s: a secret in the Nix store, which everybody can read: keep it in a file outside", path)
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
