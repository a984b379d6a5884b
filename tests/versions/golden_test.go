package versions

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestSameDocuments: a golden topology that is as it was has the documents that it had, byte
// for byte: hosts that use nothing new notice no upgrade of the compiler.
func TestSameDocuments(t *testing.T) {
	old, new := releases(t)
	dir := filepath.Join("tests", "golden", "compiler")
	cases, err := os.ReadDir(filepath.Join(old.repo, dir))
	check(t, err)
	common := same(t, filepath.Join(old.repo, dir), filepath.Join(new.repo, dir), "base.nix")
	compared := 0
	for _, c := range cases {
		was, is := filepath.Join(old.repo, dir, c.Name()), filepath.Join(new.repo, dir, c.Name())
		if !c.IsDir() || !common || !same(t, was, is, "topology.nix") {
			continue
		}
		if c.Name() == "example" {
			continue // its topology is tests/cluster, which has operators now
		}
		check(t, filepath.WalkDir(filepath.Join(was, "expected"), func(path string, d fs.DirEntry, err error) error {
			if os.IsNotExist(err) || err == nil && d.IsDir() {
				return nil
			}
			check(t, err)
			file, err := filepath.Rel(was, path)
			check(t, err)
			if compared++; !same(t, was, is, file) {
				t.Errorf("%s of %s is another than in the oldest release, want the same for the same topology", file, c.Name())
			}
			return nil
		}))
	}
	if compared == 0 {
		t.Error("no topology is as it was")
	}
}

// same reports whether a file is the same in two directories.
func same(t *testing.T, dir, other, file string) bool {
	t.Helper()
	a, err := os.ReadFile(filepath.Join(dir, file))
	if os.IsNotExist(err) {
		return false
	}
	check(t, err)
	b, err := os.ReadFile(filepath.Join(other, file))
	if os.IsNotExist(err) {
		return false
	}
	check(t, err)
	return bytes.Equal(a, b)
}
