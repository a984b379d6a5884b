package activation

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/florete/florete/internal/hostdir"
)

// TestLockIsOurs checks that an account that cannot open the lock file cannot keep activation from
// running.
func TestLockIsOurs(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "activation.lock")
	for _, what := range []string{"made", "of an earlier release"} {
		unlock, err := lock(hostdir.Layout(dir))
		if err != nil {
			t.Fatal(err)
		}
		unlock()
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v, want 0600", what, st.Mode(), err)
		}
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
