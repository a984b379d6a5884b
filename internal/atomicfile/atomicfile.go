// Package atomicfile puts a file or a link in place of another: a reader sees the old or the new one,
// whole, whenever the writer dies. A path has one writer at a time. What is of another type, such
// as a device or somebody's symbolic link, is never replaced.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// File writes a file, flushed, with exactly this mode. The next call removes what an
// interrupted one left.
func File(path string, data []byte, mode fs.FileMode) error {
	return Via(path+".new", path, data, mode)
}

// FileIn is File that makes the directory, durably, where that is missing.
func FileIn(path string, data []byte, mode fs.FileMode) error {
	err := File(path, data, mode)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := MakeDir(filepath.Dir(path)); err != nil {
		return err
	}
	return File(path, data, mode)
}

// MakeDir makes a directory, durably, and those above it.
func MakeDir(path string) error {
	err := os.Mkdir(path, 0o755)
	if err != nil { // most are all that is missing
		err = os.MkdirAll(path, 0o755)
	}
	if err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// Via is File where writers of several programs share a path: each has a temporary file
// of its own, in the same directory.
func Via(next, path string, data []byte, mode fs.FileMode) error {
	return by(next, path, mode, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	})
}

// With is File of what write writes, unless that fails.
func With(path string, mode fs.FileMode, write func(*os.File) error) error {
	return by(path+".new", path, mode, write)
}

func by(next, path string, mode fs.FileMode, write func(*os.File) error) error {
	if err := Replaceable(path, 0); err != nil {
		return err
	}
	f, err := Open(next, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) { // an interrupted one left it
		if err = remove(next); err == nil {
			f, err = Open(next, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		}
	}
	if err != nil {
		return err
	}
	err = write(f)
	return swap(next, path, errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()))
}

// Symlink makes path a link to target.
func Symlink(target, path string) error {
	next := path + ".new"
	if err := remove(next); err != nil {
		return err
	}
	return swap(next, path, os.Symlink(target, next))
}

// Replaceable returns an error unless path is of this type, 0 for a regular file, or nothing is there.
func Replaceable(path string, want fs.FileMode) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if is := info.Mode().Type(); is != want {
		return fmt.Errorf("%s: is %s, want %s or nothing there%s", path, named(is), named(want), instead(path, is))
	}
	return nil
}

// named returns the name of a type of file, with its article.
func named(t fs.FileMode) string {
	switch {
	case t == 0:
		return "a regular file"
	case t&fs.ModeSymlink != 0:
		return "a symbolic link"
	case t&fs.ModeDir != 0:
		return "a directory"
	case t&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case t&fs.ModeSocket != 0:
		return "a socket"
	case t&fs.ModeDevice != 0:
		return "a device"
	}
	return "a special file"
}

// instead returns the end of the message for a symbolic link: which path to name in its place.
func instead(path string, is fs.FileMode) string {
	if is&fs.ModeSymlink == 0 {
		return ""
	}
	to, err := os.Readlink(path)
	if err != nil {
		return ""
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(path), to)
	}
	return ": name " + to + " instead"
}

// swap brings next in force, unless it failed already.
func swap(next, path string, err error) error {
	if err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		return errors.Join(err, remove(next))
	}
	return SyncDir(filepath.Dir(path))
}

// Open is os.OpenFile for files and directories on disk: it does not first try to have them
// polled, in five more system calls.
func Open(path string, flag int, mode fs.FileMode) (*os.File, error) {
	for {
		fd, err := unix.Open(path, flag|unix.O_CLOEXEC, uint32(mode.Perm()))
		if err == nil {
			return os.NewFile(uintptr(fd), path), nil
		}
		if err != unix.EINTR {
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// SyncDir makes a directory's entries durable.
func SyncDir(path string) error {
	d, err := Open(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
