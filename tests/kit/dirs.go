package kit

import (
	"os"
	"path/filepath"
	"testing"
)

// MemoryDir returns a directory that is in memory if possible, for tests that write many files. A
// real disk takes time to flush. ext4 also looks for inodes that were not used lately, which takes
// longer than everything else where tests have just removed many files.
func MemoryDir(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "florete-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// OpenDirs lets other accounts pass through the temporary directories of a test that lead to dir, and
// through dir itself. The testing package makes such directories for its own account.
func OpenDirs(t testing.TB, dir string) {
	base := filepath.Dir(filepath.Dir(t.TempDir()))
	for ; len(dir) > len(base); dir = filepath.Dir(dir) {
		check(os.Chmod(dir, 0o755))
	}
}
