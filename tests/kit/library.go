package kit

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// CopyLibrary copies a directory of this repository, such as nix/, but leaves out Go files and test
// data. Nix hashes every file of a flake, so tests whose flakes contain the copy are faster.
func CopyLibrary(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == "testdata" {
			if err == nil {
				err = fs.SkipDir
			}
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		at := filepath.Join(to, rel)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		return os.WriteFile(at, text, 0o644)
	})
}
