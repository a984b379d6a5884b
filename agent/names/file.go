package names

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Remove takes the block out of a file of hosts(5), where there is one.
func Remove(path string) error {
	_, err := rewrite(path, "")
	return err
}

// rewrite makes the block of a file say this, and tells whether it said something
// else. Whoever reads meanwhile sees the old file or the new one.
func rewrite(path, block string) (changed bool, err error) {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	text := strip(string(old))
	if block != "" && text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	text += block
	if text == string(old) {
		return false, nil
	}
	mode := fs.FileMode(0o644)
	switch info, err := os.Lstat(path); {
	case err == nil && !info.Mode().IsRegular():
		return false, fmt.Errorf("%s is %s, want a regular file: what makes it has to list the names", path, info.Mode().Type())
	case err == nil:
		mode = info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return false, err
	}
	return true, replace(path, []byte(text), mode)
}

// replace brings a file in force at once, flushed. Its one writer leaves one temporary
// file at most, whose name begins with a dot.
func replace(path string, data []byte, mode fs.FileMode) error {
	dir, name := filepath.Split(path)
	next := filepath.Join(dir, "."+name+".florete")
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(next, path)
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
