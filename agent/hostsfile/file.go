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

// Remove takes the block out of the file, where there is one.
func Remove(c Config) error {
	_, err := c.rewrite("")
	return err
}

// rewrite replaces the instance's block, where it is or at the end, and reports
// whether it changed. Whoever reads meanwhile sees the old file or the new one, except where the
// file cannot be replaced: a file that is a mount of its own, as in containers, is written to.
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

// fixed reports whether an error is of a file that cannot be replaced, and perhaps written to.
func fixed(err error) bool {
	return errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EXDEV) || errors.Is(err, unix.EROFS) || errors.Is(err, fs.ErrPermission)
}

// overwrite makes b what is in a file, which has old. It puts that back where b does not fit.
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
