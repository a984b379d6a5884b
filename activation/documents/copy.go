package documents

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/florete/florete/activation/delivery"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
)

// rootsFile contains the roots of the set beside which it is stored.
const rootsFile = "roots.json"

// copyOf returns the directory with a second copy of the set in force, for the case that the disk
// damages the first.
func (s *Store) copyOf() delivery.Dir {
	return delivery.Dir{Path: s.layout.DocumentsCopy(), Step: s.dir.Step}
}

// copy updates the copy. Errors are ignored, because the next start writes it again.
func (s *Store) copy(set Set) {
	files := set.files()
	roots, err := json.Marshal(set.Manifest.Trust.Roots)
	if err != nil {
		return
	}
	files[rootsFile] = delivery.File{Data: roots, Mode: 0o644, UID: -1, GID: -1}
	_, _ = s.copyOf().Deliver(files)
}

// recover returns the newest intact set besides the one in force, for which damage is the error. A
// set with a root that the damaged set did not have is not considered, so that removed roots do not
// come back.
func (s *Store) recover(damage error) (newest Set, err error) {
	accepted, known := s.roots()
	candidates := []string{hostdir.Current(s.layout.DocumentsCopy())}
	for _, d := range []delivery.Dir{s.copyOf(), s.dir} {
		if dir, err := d.Previous(); err == nil {
			candidates = append(candidates, dir)
		}
	}
	err = damage
	for _, dir := range candidates {
		set, unread := readSet(dir, Set{})
		if unread != nil {
			if !errors.Is(unread, fs.ErrNotExist) {
				err = errors.Join(err, unread)
			}
			continue
		}
		if root := foreignRoot(set, accepted); known && root {
			err = errors.Join(err, fmt.Errorf("%s: it has a root that the documents in force had no more", dir))
			continue
		}
		if newest.Document.Envelope.Host == "" || set.Document.Envelope.Newer(newest.Document.Envelope) {
			newest = set
		}
	}
	if newest.Document.Envelope.Host == "" {
		return Set{}, err
	}
	return newest, nil
}

// roots returns the roots of the set in force, even if the set cannot be read. It returns false if
// they are not known.
func (s *Store) roots() (roots []string, known bool) {
	b, err := os.ReadFile(filepath.Join(hostdir.Current(s.layout.DocumentsCopy()), rootsFile))
	known = err == nil && json.Unmarshal(b, &roots) == nil
	return roots, known
}

// foreignRoot reports whether a set has a root that is not among the accepted ones.
func foreignRoot(set Set, accepted []string) bool {
	return slices.ContainsFunc(set.Manifest.Trust.Roots, func(root string) bool { return !slices.Contains(accepted, root) })
}

// damaged reports whether documents existed but could not be read with the error err.
func (s *Store) damaged(err error) bool {
	var newer *document.NewerFormatError
	if err == nil || errors.As(err, &newer) || errors.Is(err, fs.ErrPermission) {
		return false
	}
	n, unread := s.dir.Current()
	return unread == nil && n > 0
}
