package agenttest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Cgroup creates a control group (version 2), in which a test can start processes as systemd does,
// and returns its open directory. The path is relative to the root of the cgroup file system, as in
// /proc/PID/cgroup. The group is removed when the test ends. Cgroup requires root.
func Cgroup(t testing.TB, path string) *os.File {
	t.Helper()
	Root(t, "can make control groups")
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	root := ""
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); f[2] == "cgroup2" {
			root = f[1]
		}
	}
	dir := filepath.Join(root, path)
	if err := os.MkdirAll(dir, 0o755); root == "" || err != nil {
		t.Skipf("NOT RUN: control groups of version 2 at %q: %v: run it where they are mounted for writing", root, err)
	}
	t.Cleanup(func() {
		for ; dir != root; dir = filepath.Dir(dir) {
			_ = os.Remove(dir) // a parent directory may contain other groups
		}
	})
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}
