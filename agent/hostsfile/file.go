package hostsfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
	return true, c.replace([]byte(text), mode)
}

// replace brings the file in force at once, flushed. Each instance leaves one temporary
// file at most, whose name begins with a dot.
func (c Config) replace(data []byte, mode fs.FileMode) error {
	dir, name := filepath.Split(c.Hosts)
	next := filepath.Join(dir, "."+name+"."+c.Instance.String())
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(next, c.Hosts)
	}
	if err != nil {
		return errors.Join(err, os.Remove(next))
	}
	d, err := os.Open(filepath.Clean(dir))
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
