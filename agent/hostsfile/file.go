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

// Remove removes the names of an instance from the hosts(5) file. It does nothing if the file
// contains none.
func Remove(c Config) error {
	_, err := c.rewrite("")
	return err
}

// rewrite replaces the block of the instance in hosts(5), or appends a new block. The result
// changed is true if the file changed. A program that reads the file at the same time sees either
// the old content or the new content. The exception is a file that is itself a mount, as in
// containers: such a file cannot be replaced and is overwritten.
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
	if text == "" { // the file did not exist before the block
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

// fixed reports whether an error means that a file cannot be replaced by another. The file may
// still be overwritten in that case.
func fixed(err error) bool {
	return errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EXDEV) || errors.Is(err, unix.EROFS) || errors.Is(err, fs.ErrPermission)
}

// overwrite writes new content into an existing file. The argument old is the current content,
// which overwrite restores if it cannot write the new content completely.
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
