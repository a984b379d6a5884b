package hostsfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/internal/atomicfile"
)

// Remove removes the block from the file, if there is one.
func Remove(c Config) error {
	_, err := c.rewrite("")
	return err
}

// rewrite replaces the block of the instance, or appends it, and reports whether the file changed.
// Readers see either the old or the new file, unless the file cannot be replaced: a file that is
// itself a mount, as in containers, is overwritten.
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
	if text == "" { // there was no file before our block
		err = os.Remove(c.Hosts)
	} else {
		dir, name := filepath.Split(c.Hosts)
		err = atomicfile.Via(filepath.Join(dir, "."+name+"."+c.Instance.String()), c.Hosts, []byte(text), mode)
	}
	if fixed(err) {
		err = overwrite(c.Hosts, []byte(text), old)
	}
	if err != nil {
		return false, fmt.Errorf("%w: see that it can be written to, or have what makes it list the names", err)
	}
	return true, nil
}

// fixed reports whether an error means that a file cannot be replaced, so that overwriting it may
// still work.
func fixed(err error) bool {
	return errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EXDEV) || errors.Is(err, unix.EROFS) || errors.Is(err, fs.ErrPermission)
}

// overwrite replaces the content old of a file with b. It restores old if b cannot be written
// completely.
func overwrite(path string, b, old []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	write := func(b []byte) error {
		if _, err := f.WriteAt(b, 0); err != nil {
			return err
		}
		if err := f.Truncate(int64(len(b))); err != nil {
			return err
		}
		return f.Sync()
	}
	if err := write(b); err != nil {
		return errors.Join(err, write(old))
	}
	return nil
}
