package atomicfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Stdout is the path with which a person selects standard output instead of a file.
const Stdout = "-"

// Output stores the output of a command at a path that a person chose, and calls write to produce
// it. The path decides where the output goes:
//
//   - "-" stands for stdout.
//   - A regular file is replaced atomically, as With does.
//   - A pipe, a terminal or another character device receives the output.
//   - A directory, a socket, a block device and a symbolic link are refused.
//
// If write returns an error, Output stores nothing. The result printed reports whether the output
// went to stdout. The caller must then print its messages elsewhere.
func Output(path string, mode fs.FileMode, stdout io.Writer, write func(*os.File) error) (printed bool, err error) {
	if path == Stdout {
		return true, spooled(stdout, write)
	}
	info, err := os.Stat(path) // follows links such as /dev/stdout, which may lead to a pipe or a terminal
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

// into writes the output of write to the pipe or device at path.
func into(path string, write func(*os.File) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(spooled(f, write), f.Close())
}

// spooled collects the output of write in a temporary file. If write succeeds, spooled copies the
// file to to.
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
