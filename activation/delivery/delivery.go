// Package delivery writes the files of a need to disk in numbered generations:
//
//	dir/gen-3/<file>
//	dir/current -> gen-3
//
// A new generation is written beside the current one and flushed to disk. Renaming a symbolic link
// then makes it the current generation. If the process dies at any moment, a complete generation is
// current, either the old or the new one. Generation numbers only grow. The previous generation is
// kept for processes that are still reading it.
//
// A directory has one writer at a time and any number of readers.
package delivery

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/nss"
)

// linkNext is the name under which a new symbolic link is created, before it is renamed to current.
const linkNext = "current.new"

// Dir is a directory that contains the files of a need in numbered generations, one of which is
// current. It can have one writer at a time and any number of readers.
type Dir struct {
	Path string

	// Keep is the number of a generation that Clean does not remove, in addition to the current and
	// the previous one.
	Keep int

	// Step is called before each change on disk, if it is not nil. Tests use it to simulate
	// crashes.
	Step func(name string)
}

// File is a file of a generation. If UID or GID is -1, the file keeps the user or group of the
// process that writes it.
type File struct {
	Data     []byte
	Mode     fs.FileMode
	UID, GID int
}

// Current returns the number of the current generation, or zero if nothing was delivered yet.
func (d Dir) Current() (int, error) {
	to, err := os.Readlink(hostdir.Current(d.Path))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, ok := number(to)
	if !ok {
		return 0, fmt.Errorf("%s points to %q, want gen-<number>: remove it", hostdir.Current(d.Path), to)
	}
	return n, nil
}

// Previous returns the path of the generation before the current one.
func (d Dir) Previous() (string, error) {
	before, _, err := d.others()
	if err == nil && before == 0 {
		err = fmt.Errorf("%s: no generation before the one in force", d.Path)
	}
	return d.gen(before), err
}

// others returns the number of the generation before the current one, or zero if there is none. It
// also returns the names of all obsolete entries, which can be removed: old generations, and a
// symbolic link that was not yet renamed.
func (d Dir) others() (before int, rest []string, err error) {
	now, err := d.Current()
	if err != nil {
		return 0, nil, err
	}
	entries, err := os.ReadDir(d.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	for _, e := range entries {
		if n, ok := number(e.Name()); ok && n < now {
			before = max(before, n)
		}
	}
	for _, e := range entries {
		if n, ok := number(e.Name()); ok && n != now && n != before || e.Name() == linkNext {
			rest = append(rest, e.Name())
		}
	}
	return before, rest, nil
}

// Deliver writes files, given by their names, as a new generation, makes it current, and returns
// its number. The change is atomic, even if the process dies. If the current generation already
// consists of the same files, with the same content, modes and owners, Deliver changes nothing and
// returns the current number.
func (d Dir) Deliver(files map[string]File) (int, error) {
	now, err := d.Current()
	if err != nil {
		return 0, err
	}
	if now > 0 && d.holds(now, files) {
		return now, nil
	}
	next := now + 1
	if err = d.write(next, files); err == nil {
		err = d.swap(next)
	}
	if err != nil {
		return 0, errors.Join(err, d.Clean())
	}
	if now == 0 { // there are no earlier ones either
		return next, nil
	}
	return next, d.Clean()
}

// Restore makes the files of the earlier generation n current again. It copies them to a new
// generation and returns the number of that generation. The copies belong to the user of this
// process.
func (d Dir) Restore(n int) (int, error) {
	entries, err := os.ReadDir(d.gen(n))
	if err != nil {
		return 0, err
	}
	files := map[string]File{}
	for _, e := range entries {
		if files[e.Name()], err = read(filepath.Join(d.gen(n), e.Name())); err != nil {
			return 0, err
		}
	}
	return d.Deliver(files)
}

// Clean removes old generations and the remains of an interrupted Deliver. It keeps the current
// generation, the previous one, and the generation whose number is in the field Keep.
func (d Dir) Clean() error {
	_, rest, err := d.others()
	if err != nil {
		return err
	}
	for _, other := range rest {
		if other == name(d.Keep) {
			continue
		}
		d.step("remove " + other)
		if err := os.RemoveAll(filepath.Join(d.Path, other)); err != nil {
			return err
		}
	}
	return nil
}

// holds reports whether generation n consists of exactly these files.
func (d Dir) holds(n int, files map[string]File) bool {
	entries, err := os.ReadDir(d.gen(n))
	if err != nil || len(entries) != len(files) {
		return false
	}
	for name, f := range files {
		if !f.at(filepath.Join(d.gen(n), name)) {
			return false
		}
	}
	return true
}

// begin creates the directory of generation n, and its parent directories. If an interrupted
// Deliver left a directory of that name, begin removes it first.
func (d Dir) begin(n int) error {
	d.step("mkdir " + name(n))
	err := os.Mkdir(d.gen(n), 0o700)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = atomicfile.MakeDir(d.Path)
	case errors.Is(err, fs.ErrExist):
		err = d.Clean()
	default:
		return err
	}
	if err != nil {
		return err
	}
	d.step("mkdir " + name(n) + " again")
	return os.Mkdir(d.gen(n), 0o700)
}

func (d Dir) write(n int, files map[string]File) error {
	dir := d.gen(n)
	if err := d.begin(n); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := files[name].create(filepath.Join(dir, name), d.step); err != nil {
			return err
		}
	}
	d.step("open " + name(n))
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	d.step("sync " + name(n))
	if err := atomicfile.SyncDir(dir); err != nil {
		return err
	}
	return atomicfile.SyncDir(d.Path)
}

// swap makes generation n the current one.
func (d Dir) swap(n int) error {
	link, next := hostdir.Current(d.Path), filepath.Join(d.Path, linkNext)
	d.step("link " + name(n))
	if err := os.Symlink(name(n), next); err != nil {
		return err
	}
	d.step("swap " + name(n))
	if err := os.Rename(next, link); err != nil {
		return err
	}
	d.step("sync swap " + name(n))
	return atomicfile.SyncDir(d.Path)
}

func (d Dir) step(name string) {
	if d.Step != nil {
		d.Step(name)
	}
}

func (d Dir) gen(n int) string { return filepath.Join(d.Path, name(n)) }

func name(n int) string { return "gen-" + strconv.Itoa(n) }

// number returns the number in the name of a generation, such as 3 for "gen-3". It reports false if
// s is not such a name.
func number(s string) (int, bool) {
	digits, ok := strings.CutPrefix(s, "gen-")
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n > 0 && name(n) == s
}

// create writes the file to path and flushes it to disk. The directory must be one that no other
// account can enter yet, because the owner of the file is set last: once a file belongs to another
// account, changing its mode requires an additional privilege.
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

// read returns the file at path, with the writer as its owner.
func read(path string) (File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return File{}, err
	}
	data, err := os.ReadFile(path)
	return File{Data: data, Mode: info.Mode().Perm(), UID: -1, GID: -1}, err
}

// at reports whether the file at path has the content, mode and owner of f.
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

// Owner returns the user and group that must own the files of a delivery. They are the declared
// account, and the group of the same name if there is one. The primary group of the account is not
// used, because several accounts may share it. A value of -1 means that the owner need not be
// changed. If this process is not root, both values are -1. Owner returns an error if the declared
// account does not exist.
func Owner(d document.Deliver) (uid, gid int, err error) {
	uid, gid = -1, -1
	if os.Geteuid() != 0 {
		return uid, gid, nil
	}
	if d.Owner == "" {
		return uid, gid, nil
	}
	u, err := nss.Lookup(d.Owner)
	var unknown user.UnknownUserError
	if errors.As(err, &unknown) {
		return 0, 0, fmt.Errorf("owner %q: no such account on this host: create it", d.Owner)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("owner: %w", err)
	}
	if uid, err = strconv.Atoi(u.Uid); err != nil {
		return 0, 0, fmt.Errorf("owner %q: uid %q is no number", d.Owner, u.Uid)
	}
	if g, err := nss.LookupGroup(d.Owner); err == nil {
		if gid, err = strconv.Atoi(g.Gid); err != nil {
			return 0, 0, fmt.Errorf("group %q: gid %q is no number", d.Owner, g.Gid)
		}
	}
	return uid, gid, nil
}
