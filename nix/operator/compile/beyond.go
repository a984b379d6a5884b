package compile

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	// forbidden matches Nix's message about a path outside of the flake's tree. The message does
	// not name the file that refers to it.
	forbidden = regexp.MustCompile(`^access to (canonical|absolute) path '.*' is forbidden`)
	// unpinned matches Nix's message about a fetch without a hash. It names the function.
	unpinned = regexp.MustCompile(`^in pure evaluation mode, '(\w+)' requires a 'sha256' argument`)
	// pathText matches a path in a Nix file that may lead out of the tree.
	pathText = regexp.MustCompile(`(?:^|[\s\[(;=])((?:\.\.?)?/[A-Za-z0-9._+/-]+)`)
)

// beyond returns an error that names the files of a flake that lead out of its tree, if Nix
// reported such a path. It returns nil if Nix reported another error, or if no such file is found.
func beyond(dir, said string) error {
	var leads func(path string) bool
	remedy := "a flake reads files of its own tree alone, want a copy of that file here, or an input of the flake"
	if fetch := unpinned.FindStringSubmatch(said); fetch != nil {
		leads = func(path string) bool { return strings.Contains(text(path), fetch[1]) }
		remedy = "a flake fetches nothing without a hash, want sha256 beside the address, or an input of the flake"
	} else if forbidden.MatchString(said) {
		leads = func(path string) bool { return leaves(dir, path) }
	} else {
		return nil
	}
	var found []string
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
		case e.Name() == ".git":
			return filepath.SkipDir
		case e.Type()&fs.ModeSymlink != 0 || strings.HasSuffix(path, ".nix"):
			if name, err := filepath.Rel(dir, path); err == nil && !e.IsDir() && leads(path) {
				found = append(found, name)
			}
		}
		return nil
	})
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s: %s", strings.Join(found, ", "), said, remedy)
}

func text(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(b)
}

// leaves reports whether a file is a link, or contains a path, that leads out of a directory.
func leaves(dir, path string) bool {
	out := func(to string) bool {
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		in, err := filepath.Rel(dir, to)
		return err != nil || !filepath.IsLocal(in)
	}
	if to, err := os.Readlink(path); err == nil {
		return out(to)
	}
	for _, p := range pathText.FindAllStringSubmatch(text(path), -1) {
		if out(p[1]) {
			return true
		}
	}
	return false
}
