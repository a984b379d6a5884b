package atomicfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Stdout is the path that means standard output.
const Stdout = "-"

// Output writes what write writes to a path that a person chose, unless write fails. "-" is standard
// output, which is stdout. A regular file is replaced, as With does; a pipe, a terminal or another
// character device is written to. Whatever else is there is refused: a directory, a socket, a disk,
// and a symbolic link to a file, which would be lost.
//
// printed reports whether stdout has the output, so that messages belong elsewhere.
func Output(path string, mode fs.FileMode, stdout io.Writer, write func(*os.File) error) (printed bool, err error) {
	if path == Stdout {
		return true, spooled(stdout, write)
	}
	info, err := os.Stat(path) // follows /dev/stdout, a link to a pipe or a terminal
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if err == nil {
		if own, err := os.Stdout.Stat(); err == nil && os.SameFile(info, own) {
			return true, spooled(stdout, write)
		}
		if info.Mode()&(fs.ModeNamedPipe|fs.ModeCharDevice) != 0 {
			return false, into(path, write)
		}
		if !info.Mode().IsRegular() {
			return false, fmt.Errorf("%s: is %s, want a file, a pipe, or - for standard output", path, named(info.Mode().Type()))
		}
	}
	return false, With(path, mode, write)
}

// into writes to the pipe or device that is at path.
func into(path string, write func(*os.File) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(spooled(f, write), f.Close())
}

// spooled copies what write writes once it is whole.
func spooled(to io.Writer, write func(*os.File) error) error {
	f, err := os.CreateTemp("", "florete-")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := errors.Join(os.Remove(f.Name()), write(f)); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err = io.Copy(to, bufio.NewReader(f))
	return err
}
