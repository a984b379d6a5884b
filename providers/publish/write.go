package publish

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/replace"
)

// Write makes dir the tree: a symlink to a directory beside it, which is replaced
// whole. It refuses what would make hosts go back, or differ among themselves.
func (t Tree) Write(dir string) error {
	dir = filepath.Clean(dir)
	old, err := os.Readlink(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("%s: is there and was not published: remove it or choose another", dir)
	}
	if old != "" {
		if err := t.follows(dir); err != nil {
			return err
		}
	}
	parent, base := filepath.Dir(dir), filepath.Base(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	next, err := os.MkdirTemp(parent, fmt.Sprintf(".%s@%d-", base, t.Serial()))
	if err != nil {
		return err
	}
	if err := t.fill(next); err != nil {
		return errors.Join(err, os.RemoveAll(next))
	}
	if err := replace.Symlink(filepath.Base(next), dir); err != nil {
		return errors.Join(err, os.RemoveAll(next))
	}
	// The previous tree stays for those who are reading it.
	return prune(parent, base, filepath.Base(next), old)
}

// follows checks that no host has a newer or another document of the same serial.
func (t Tree) follows(dir string) error {
	for host, documents := range t {
		for _, d := range documents {
			was, err := florete.Read(filepath.Join(dir, host), d.Envelope.Kind)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			o, n := was.Envelope, d.Envelope
			switch {
			case o.Cluster != n.Cluster:
				return fmt.Errorf("%s: has cluster %s, this is %s: choose another directory", dir, o.Cluster, n.Cluster)
			case n.Serial < o.Serial:
				return fmt.Errorf("%s: has serial %d, this is %d: commit anew, hosts never go back", dir, o.Serial, n.Serial)
			case n.Serial == o.Serial && n.Digest != o.Digest:
				return fmt.Errorf("%s: has another %s of %s with the same serial %d: commit again, a second later", dir, n.Kind, host, n.Serial)
			}
		}
	}
	return nil
}

// fill writes the documents and flushes them, before anything points at them. The
// provider, another account, reads them, whatever the umask of who publishes.
func (t Tree) fill(dir string) error {
	for host, documents := range t {
		at := filepath.Join(dir, host)
		if err := os.Mkdir(at, 0o755); err != nil {
			return err
		}
		for _, d := range documents {
			if err := d.Write(at); err != nil {
				return err
			}
		}
	}
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		f, err := os.OpenFile(path, syscall.O_NOFOLLOW, 0)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if e.IsDir() {
			mode = 0o755
		}
		return errors.Join(f.Chmod(mode), f.Sync(), f.Close())
	})
}

// SerialOf is the serial of a directory that Write made, zero of any other.
func SerialOf(dir string) int64 {
	found := regexp.MustCompile(`@([0-9]+)-[0-9]+$`).FindStringSubmatch(dir)
	if found == nil {
		return 0
	}
	serial, _ := strconv.ParseInt(found[1], 10, 64)
	return serial
}

// prune removes the trees of base that nothing points at any more.
func prune(parent, base string, keep ...string) error {
	ours := regexp.MustCompile(`^\.` + regexp.QuoteMeta(base) + `@[0-9]+-[0-9]+$`)
	entries, err := os.ReadDir(parent)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !ours.MatchString(e.Name()) || slices.Contains(keep, e.Name()) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(parent, e.Name())); err != nil {
			return err
		}
	}
	return nil
}
