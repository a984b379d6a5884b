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

// rootsFile is the name of a file beside the copy of a set. It contains the roots of the set.
const rootsFile = "roots.json"

// copyOf returns the directory with a second copy of the documents in force. The copy is used if
// the first one is damaged, for example by the disk.
func (s *Store) copyOf() delivery.Dir {
	return delivery.Dir{Path: s.layout.DocumentsCopy(), Step: s.dir.Step}
}

// copy updates the second copy of the documents. Errors are ignored, because the copy is written
// again at the next start.
func (s *Store) copy(set Set) {
	files := set.files()
	roots, err := json.Marshal(set.Manifest.Trust.Roots)
	if err != nil {
		return
	}
	files[rootsFile] = delivery.File{Data: roots, Mode: 0o644, UID: -1, GID: -1}
	_, _ = s.copyOf().Deliver(files)
}

// recover finds documents to replace a damaged set in force. It returns the newest intact set among
// the second copy and the previous generations. It skips a set that has a root which the damaged
// set did not have, so that a removed root does not become valid again. If there is no such set,
// the returned error includes the given one, which describes the damage.
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

// roots returns the roots of the documents in force, which are known even if the documents are
// damaged. It returns false if the roots cannot be read either.
func (s *Store) roots() (roots []string, known bool) {
	b, err := os.ReadFile(filepath.Join(hostdir.Current(s.layout.DocumentsCopy()), rootsFile))
	known = err == nil && json.Unmarshal(b, &roots) == nil
	return roots, known
}

// foreignRoot reports whether a set has a root that is not in the list of accepted roots.
func foreignRoot(set Set, accepted []string) bool {
	return slices.ContainsFunc(set.Manifest.Trust.Roots, func(root string) bool { return !slices.Contains(accepted, root) })
}

// damaged reports whether documents are in force but damaged. The argument is the error of reading
// them.
func (s *Store) damaged(err error) bool {
	var newer *document.NewerFormatError
	if err == nil || errors.As(err, &newer) || errors.Is(err, fs.ErrPermission) {
		return false
	}
	n, unread := s.dir.Current()
	return unread == nil && n > 0
}
