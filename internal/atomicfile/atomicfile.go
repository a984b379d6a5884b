// Package atomicfile replaces files and symbolic links atomically. A reader sees either the
// complete old file or the complete new file, even if the writer dies. Each path must have only one
// writer at a time. The package never replaces an existing file of another type, such as a device.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// File writes data to the file at path atomically and flushes it to disk. A reader sees either the
// old content or the new content, even after a crash. The file gets exactly the given mode,
// regardless of the umask. File returns an error if path exists and is not a regular file.
func File(path string, data []byte, mode fs.FileMode) error {
	return Via(path+".new", path, data, mode)
}

// FileIn is like File, but creates missing parent directories of path.
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

// MakeDir creates a directory and its missing parents with mode 0755, and flushes the new directory
// entry to disk.
func MakeDir(path string) error {
	err := os.Mkdir(path, 0o755)
	if err != nil { // usually only the last directory is missing
		err = os.MkdirAll(path, 0o755)
	}
	if err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// Via is like File, for a path that several programs write. Each program must pass its own
// temporary path next, in the same directory as path.
func Via(next, path string, data []byte, mode fs.FileMode) error {
	return by(next, path, mode, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	})
}

// With is like File, but calls write to produce the content. If write returns an error, the file at
// path does not change.
func With(path string, mode fs.FileMode, write func(*os.File) error) error {
	return by(path+".new", path, mode, write)
}

func by(next, path string, mode fs.FileMode, write func(*os.File) error) error {
	if err := Replaceable(path, 0); err != nil {
		return err
	}
	f, err := Open(next, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) { // an interrupted call left it behind
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

// Symlink atomically makes path a symbolic link to target.
func Symlink(target, path string) error {
	next := path + ".new"
	if err := remove(next); err != nil {
		return err
	}
	return swap(next, path, os.Symlink(target, next))
}

// Replaceable returns an error if path exists and its file type is not want. A want of 0 stands for
// a regular file. Symbolic links are not followed.
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

// named returns the name of a file type for people, with its article, such as "a directory".
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

// instead returns the end of the error for a path that is a symbolic link. It tells the reader to
// use the path of the link's target.
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

// swap renames the file next to path if err is nil. Otherwise it removes next and returns err.
func swap(next, path string, err error) error {
	if err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		return errors.Join(err, remove(next))
	}
	return SyncDir(filepath.Dir(path))
}

// Open opens a file or directory on disk like os.OpenFile, but does not register it with the
// network poller, which saves system calls.
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

// SyncDir flushes a directory to disk, so that new, renamed and removed files in it survive a
// crash.
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
