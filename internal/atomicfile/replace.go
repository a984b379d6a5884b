// Package atomicfile puts a file, a link or a socket in place of another of its type: a reader sees the
// old or the new one, whole, whenever the writer dies. A path has one writer at a time. What is of
// another type, such as a device or somebody's symbolic link, is never replaced.
package atomicfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
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
	if err := replaceable(path, 0); err != nil {
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

// replaceable returns an error unless path is of this type, 0 for a regular file, or nothing is there.
func replaceable(path string, want fs.FileMode) error {
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

// maxSocket bounds the length of a Unix socket's path (unix(7): sun_path has 108 bytes, the last of which is 0).
const maxSocket = 107

// SocketPath refuses a path at which the kernel has no Unix socket, for which it has but "invalid argument".
func SocketPath(path string) error {
	if len(path) > maxSocket {
		return fmt.Errorf("socket %s: %d bytes, want at most %d, the limit of Unix sockets: choose a shorter directory, such as one below /run", path, len(path), maxSocket)
	}
	return nil
}

// DialSocket connects to a Unix socket.
func DialSocket(ctx context.Context, path string) (net.Conn, error) {
	if err := SocketPath(path); err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, "unix", path)
}

// Socket listens at a Unix socket with this mode, in place of one that a process left.
func Socket(path, network string, mode fs.FileMode) (*net.UnixListener, error) {
	err := SocketPath(path)
	if err == nil {
		err = replaceable(path, fs.ModeSocket)
	}
	if err == nil {
		err = remove(path)
	}
	if err != nil {
		return nil, err
	}
	ln, err := net.ListenUnix(network, &net.UnixAddr{Name: path, Net: network})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, mode); err != nil {
		ln.Close()
		return nil, err
	}
	return ln, nil
}

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
