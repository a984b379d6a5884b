package delivery

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"

	"github.com/florete/florete/internal/atomicfile"
)

// create makes the file and flushes it. A file with an owner is made where nobody
// else can enter yet. It gets the owner last: to change the mode of what is someone
// else's would take another privilege.
func (f File) create(path string, step func(string)) error {
	base := filepath.Base(path)
	step("create " + base)
	w, err := atomicfile.Open(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer w.Close()
	step("write " + base)
	if _, err := w.Write(f.Data); err != nil {
		return err
	}
	step("chmod " + base)
	if err := w.Chmod(f.Mode); err != nil {
		return err
	}
	if f.UID != -1 || f.GID != -1 {
		step("chown " + base)
		if err := w.Chown(f.UID, f.GID); err != nil {
			return err
		}
	}
	step("sync " + base)
	if err := w.Sync(); err != nil {
		return err
	}
	return w.Close()
}

// read returns the file at path, for the writer.
func read(path string) (File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return File{}, err
	}
	data, err := os.ReadFile(path)
	return File{Data: data, Mode: info.Mode().Perm(), UID: -1, GID: -1}, err
}

// at reports whether path is f.
func (f File) at(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm() != f.Mode {
		return false
	}
	owner := info.Sys().(*syscall.Stat_t)
	if f.UID != -1 && int(owner.Uid) != f.UID || f.GID != -1 && int(owner.Gid) != f.GID {
		return false
	}
	data, err := os.ReadFile(path)
	return err == nil && bytes.Equal(data, f.Data)
}
