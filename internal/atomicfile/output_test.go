package atomicfile_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/unixsock"
)

// hello writes a text, in place of the output of a command.
func hello(f *os.File) error {
	_, err := f.WriteString("hello")
	return err
}

// special creates one file of each type that must not be replaced, and returns the paths of these
// files.
func special(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	all := map[string]string{}
	add := func(name string, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		all[name] = filepath.Join(dir, name)
	}
	path := func(name string) string { return filepath.Join(dir, name) }
	add("file", os.WriteFile(path("file"), []byte("before"), 0o600))
	add("link", os.Symlink("file", path("link")))
	add("dangling", os.Symlink("nothing", path("dangling")))
	add("fd", os.Symlink("/proc/self/fd/1", path("fd")))
	add("directory", os.Mkdir(path("directory"), 0o755))
	add("fifo", unix.Mkfifo(path("fifo"), 0o600))
	ln, err := net.Listen("unix", path("socket"))
	add("socket", err)
	t.Cleanup(func() { ln.Close() })
	if os.Getuid() == 0 {
		add("null", unix.Mknod(path("null"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))))
		add("disk", unix.Mknod(path("disk"), unix.S_IFBLK|0o600, int(unix.Mkdev(7, 255))))
	}
	return all
}

// TestOnlyFiles checks that only regular files are replaced, and that files of other types stay
// unchanged.
func TestOnlyFiles(t *testing.T) {
	for name, path := range special(t) {
		before, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		err = atomicfile.File(path, []byte("after"), 0o600)
		if name == "file" {
			if err != nil {
				t.Errorf("a regular file: %v", err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), path+": is a") || !strings.Contains(err.Error(), ", want a regular file or nothing there") {
			t.Errorf("%s: %v", name, err)
		}
		if now, err := os.Lstat(path); err != nil || !os.SameFile(before, now) {
			t.Errorf("%s is another file now: %v", name, err)
		}
		if name != "socket" {
			if ln, err := unixsock.Listen(path, "unix", 0o600); err == nil {
				ln.Close()
				t.Errorf("%s: replaced by a socket", name)
			}
		}
	}
}

// TestOutput checks that Output replaces a regular file, and that it writes to standard output or
// to an existing special file that can receive output. Other files must stay unchanged.
func TestOutput(t *testing.T) {
	all := special(t)
	for name, want := range map[string]string{
		"file": "", "fifo": "", "null": "",
		"link":      "is a symbolic link, want a regular file or nothing there: name " + all["file"] + " instead",
		"dangling":  "is a symbolic link, want a regular file",
		"directory": "is a directory, want a file, a pipe, or - for standard output",
		"socket":    "is a socket, want a file, a pipe",
		"disk":      "is a device, want a file, a pipe",
	} {
		path, there := all[name]
		if !there {
			continue // needs root
		}
		before, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		read := make(chan string, 1)
		if name == "fifo" {
			go func() {
				b, _ := os.ReadFile(path)
				read <- string(b)
			}()
		}
		var stdout bytes.Buffer
		printed, err := atomicfile.Output(path, 0o640, &stdout, hello)
		if printed || stdout.Len() > 0 || (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: printed %v, %q, %v, want %q", name, printed, &stdout, err, want)
		}
		now, err := os.Lstat(path)
		switch {
		case err != nil:
			t.Error(err)
		case name == "file":
			if b, err := os.ReadFile(path); err != nil || string(b) != "hello" || now.Mode() != 0o640 {
				t.Errorf("file: %q, mode %v, %v", b, now.Mode(), err)
			}
			if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
				t.Fatal(err)
			}
		case !os.SameFile(before, now):
			t.Errorf("%s is another file now", name)
		case name == "fifo":
			if got := <-read; got != "hello" {
				t.Errorf("fifo: %q", got)
			}
		}
	}
	if b, err := os.ReadFile(all["file"]); err != nil || string(b) != "before" {
		t.Errorf("behind the link: %q, %v", b, err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(all["file"]), "nothing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("behind the dangling link: %v", err)
	}
}

// TestOutputPrinted checks that "-" and a link to standard output both count as standard output.
func TestOutputPrinted(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, path := range []string{atomicfile.Stdout, special(t)["fd"]} {
		var stdout bytes.Buffer
		printed, err := atomicfile.Output(path, 0o600, &stdout, hello)
		if !printed || stdout.String() != "hello" || err != nil {
			t.Errorf("%s: printed %v, %q, %v", path, printed, &stdout, err)
		}
		stdout.Reset()
		_, err = atomicfile.Output(path, 0o600, &stdout, func(f *os.File) error {
			_ = hello(f)
			return io.ErrUnexpectedEOF
		})
		if !errors.Is(err, io.ErrUnexpectedEOF) || stdout.Len() > 0 {
			t.Errorf("%s: half of it is printed: %q, %v", path, &stdout, err)
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}
