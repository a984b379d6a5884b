package hostsfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/florete/florete/providers/replace"
)

// Remove takes the block out of the file, where there is one.
func Remove(c Config) error {
	_, err := c.rewrite("")
	return err
}

// rewrite replaces the instance's block, where it is or at the end, and reports
// whether it changed. Whoever reads meanwhile sees the old file or the new one.
func (c Config) rewrite(block string) (changed bool, err error) {
	old, err := os.ReadFile(c.Hosts)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	before, after := cut(string(old), c.Instance)
	if block != "" && before != "" && !strings.HasSuffix(before, "\n") {
		before += "\n"
	}
	text := before + block + after
	if text == string(old) {
		return false, nil
	}
	mode := fs.FileMode(0o644)
	switch info, err := os.Lstat(c.Hosts); {
	case err == nil && !info.Mode().IsRegular():
		return false, fmt.Errorf("%s is %s, want a regular file: what makes it has to list the names", c.Hosts, info.Mode().Type())
	case err == nil:
		mode = info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return false, err
	}
	if text == "" { // none but ours, where there was no file before
		return true, os.Remove(c.Hosts)
	}
	dir, name := filepath.Split(c.Hosts)
	return true, replace.Via(filepath.Join(dir, "."+name+"."+c.Instance.String()), c.Hosts, []byte(text), mode)
}
