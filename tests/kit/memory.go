package kit

import (
	"os"
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
