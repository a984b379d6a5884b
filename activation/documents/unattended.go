package documents

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/unixtime"
)

// beginUnattended puts an offer in force as a commit that activation confirms itself. Its
// deadline is by the wall clock until whoever goes back writes it by the other one: activation
// is confined, and has no identity of the boot.
func (s *Store) beginUnattended(ctx context.Context, o Offer) error {
	c := Clock{Wall: time.Now()}.Commit(s.Timeout)
	c.Unattended = true
	_, err := s.begin(ctx, o, c, s.Arm)
	return err
}

// dropUnchanged ends an unattended commit that an activation left when it died before it
// changed anything. Documents are locked.
func (s *Store) dropUnchanged() error {
	c, err := s.layout.PendingCommit()
	if c == nil || err != nil || !c.Unattended || c.Generation != s.set.Generation {
		return nil // an error is of who finds it pending
	}
	return s.remove(s.layout.CommitFile())
}

// Unproved is the unattended commit of which a provider's answer under the documents in force
// decides something, nil for none: while it is pending, that it stays; after it went back,
// that it had cut the host off.
func (s *Store) Unproved() (c *hostdir.Commit, undone bool) {
	c, err := s.layout.PendingCommit()
	if c == nil && err == nil {
		c, err = s.layout.Undone()
		undone = true
	}
	if c == nil || err != nil || !c.Unattended || !c.Answered.IsZero() {
		return nil, false
	}
	under := c.Documents
	if undone {
		under = c.Before
	}
	if !slices.Equal(s.set.Reported(), under) { // others are in force, or come in force right now
		return nil, false
	}
	return c, undone
}

// NoteAnswered notes that a provider answers under the documents before, and not under those of
// the commit that went back last.
func NoteAnswered(l hostdir.Layout, id string, now time.Time) error {
	unlock, err := lock(l)
	if err != nil {
		return err
	}
	defer unlock()
	c, err := l.Undone()
	if c == nil || err != nil || c.ID != id {
		return err
	}
	c.Answered = unixtime.Of(now)
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return atomicfile.File(l.UndoneFile(), append(b, '\n'), 0o644)
}

// Redo puts what went back last in force again: for good, or as a commit once more where again
// reports true of it.
func (s *Store) Redo(ctx context.Context, id string, again func(Set) bool) error {
	unlock, err := lock(s.layout)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := s.refresh(); err != nil {
		return err
	}
	c, undone := s.Unproved()
	if c == nil || !undone || c.ID != id {
		return nil
	}
	dir, err := s.dir.Previous()
	if err != nil {
		return err
	}
	set, err := readSet(dir, s.set)
	if err == nil && !slices.Equal(set.Reported(), c.Documents) {
		err = fmt.Errorf("%s: it is not %s, which went back", dir, c)
	}
	if err != nil {
		return err
	}
	if s.Arm != nil && again(set) {
		return s.beginUnattended(ctx, Offer{Set: set, Changed: true})
	}
	if err := s.put(set); err != nil {
		return err
	}
	return s.remove(s.layout.UndoneFile())
}

// contents are the digests of a set's documents.
func (s Set) contents() (digests []string) {
	for _, d := range s.Reported() {
		digests = append(digests, d.Digest)
	}
	return digests
}
