package documents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/unixtime"
)

// Arm returns when a process is at work that goes back from a commit (commit.Supervise).
type Arm func(context.Context) error

// ArmTimeout bounds that, since documents are locked meanwhile.
const ArmTimeout = 8 * time.Second

// armError is the error of Arm.
type armError struct{ error }

// Begin puts an offer in force as a commit, which has an identity and a deadline. It is on
// disk, and arm has seen to whoever goes back from it, before anything changes. Where the
// error comes with a commit, that is pending all the same.
func (s *Store) Begin(ctx context.Context, o Offer, c hostdir.Commit, arm Arm) (*hostdir.Commit, error) {
	unlock, err := lock(s.layout)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return s.begin(ctx, o, c, arm)
}

func (s *Store) begin(ctx context.Context, o Offer, c hostdir.Commit, arm Arm) (*hostdir.Commit, error) {
	if n, err := s.dir.Current(); err != nil || n != s.set.Generation {
		return nil, errors.Join(err, errors.New("documents: others came in force meanwhile: flor sync, once more"))
	}
	if err := s.NoneIsPending(); err != nil {
		return nil, err
	}
	c.Documents, c.Before, c.Generation = o.Set.Reported(), s.set.Reported(), s.set.Generation
	if err := s.arm(ctx, c, arm); err != nil {
		return nil, err
	}
	if err := s.commit(o); err != nil {
		if n, unread := s.dir.Current(); unread == nil && n == c.Generation {
			return nil, errors.Join(err, s.remove(s.layout.CommitFile()))
		}
		return &c, err
	}
	return &c, nil
}

// BeginSystem makes a change of the whole installation a commit, which is on disk and armed
// when it returns: who changes it does so then. dir has the documents that it brings.
func BeginSystem(ctx context.Context, l hostdir.Layout, c hostdir.Commit, dir string, arm Arm) (*hostdir.Commit, error) {
	unlock, err := lock(l)
	if err != nil {
		return nil, err
	}
	defer unlock()
	s := &Store{layout: l, dir: dirOf(l, nil)}
	if err := s.NoneIsPending(); err != nil {
		return nil, err
	}
	if s.record, err = loadRecord(l.State()); err != nil {
		return nil, err
	}
	c.System.Closure = s.record.Closure
	c.Before, c.Documents = []document.Reported{}, []document.Reported{} // providers refuse null
	held, err := s.held()
	if err == nil {
		c.Before, c.Generation = held.Reported(), held.Generation
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if brought, err := readSet(dir, Set{}); err == nil {
		c.Documents = brought.Reported()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("documents that it brings: %w", err)
	}
	return &c, s.arm(ctx, c, arm)
}

// arm writes a commit, and removes it where nobody can be had who goes back from it.
func (s *Store) arm(ctx context.Context, c hostdir.Commit, arm Arm) error {
	s.step("write commit")
	if err := write(s.layout, c); err != nil {
		return err
	}
	s.step("arm")
	ctx, cancel := context.WithTimeout(ctx, ArmTimeout)
	defer cancel()
	if err := arm(ctx); err != nil {
		return errors.Join(&armError{err}, s.remove(s.layout.CommitFile()))
	}
	return nil
}

// Rearm replaces what is known of the deadline of a commit, if it is pending still.
func Rearm(l hostdir.Layout, c hostdir.Commit) error {
	unlock, err := lock(l)
	if err != nil {
		return err
	}
	defer unlock()
	if p, err := l.PendingCommit(); err != nil || p == nil || p.ID != c.ID {
		return err
	}
	return write(l, c)
}

// Extend sees to it that the pending commit of an identity has a time left, see Clock.Extend.
func Extend(l hostdir.Layout, id string, left, most time.Duration) error {
	unlock, err := lock(l)
	if err != nil {
		return err
	}
	defer unlock()
	c, err := l.PendingCommit()
	if err != nil || c == nil || c.ID != id {
		return err
	}
	now, err := ReadClock()
	if err != nil {
		return err
	}
	if longer, ok := now.Extend(*c, left, most); ok {
		return write(l, longer)
	}
	return nil
}

// Confirm ends the pending commit of this identity: it does not go back any more. check may
// refuse, nil for what never does.
func Confirm(l hostdir.Layout, id string, step func(string), check func(hostdir.Commit) error) error {
	unlock, err := lock(l)
	if err != nil {
		return err
	}
	defer unlock()
	s := Store{layout: l, dir: dirOf(l, step)}
	c, err := l.PendingCommit()
	if err != nil {
		return err
	}
	if c == nil || c.ID != id {
		return s.notPending(id, c)
	}
	if err := s.inForce(*c); err != nil {
		return err
	}
	if check != nil {
		if err := check(*c); err != nil {
			return err
		}
	}
	return s.remove(l.CommitFile())
}

// inForce is an error where what a commit brings is not in force.
func (s *Store) inForce(c hostdir.Commit) error {
	if c.System != nil {
		if found := c.System.InForce(); found != c.System.To {
			return fmt.Errorf("commit %s: %s is not in force, but %q: it goes back by itself", c.ID, c.System.To, found)
		}
		return nil
	}
	held, err := s.held()
	if err == nil && !slices.Equal(held.Reported(), c.Documents) {
		err = fmt.Errorf("commit %s: it is not in force, and goes back: flor sync", c.ID)
	}
	return err
}

// Undo goes back from the pending commit and returns it, nil where there was none, or it had
// changed nothing yet. It may be called again, whatever interrupted it. Of a commit that
// changes the whole installation, that of before is in force again already.
func Undo(l hostdir.Layout, step func(string)) (*hostdir.Commit, error) {
	unlock, err := insist(l)
	if err != nil {
		return nil, err
	}
	defer unlock()
	s := Store{layout: l, dir: dirOf(l, step)}
	c, err := l.PendingCommit()
	if c == nil || err != nil {
		return nil, err
	}
	n, err := s.dir.Current()
	if err != nil {
		return nil, err
	}
	if n == c.Generation && c.System == nil {
		return nil, s.remove(l.CommitFile())
	}
	// What cannot be noted, on a full disk, is no reason to stay.
	unnoted := s.noteUndone(*c)
	if held, err := s.held(); c.Generation > 0 && (err != nil || !slices.Equal(held.Reported(), c.Before)) {
		if _, err := s.dir.Restore(c.Generation); err != nil {
			return nil, err
		}
	}
	s.step("rename commit")
	if err := os.Rename(l.CommitFile(), l.UndoneFile()); err != nil {
		return nil, err
	}
	return c, errors.Join(unnoted, s.sync())
}

// noteUndone records what a commit brought, before it goes: whoever fetches must not bring it
// again.
func (s *Store) noteUndone(c hostdir.Commit) (err error) {
	if s.record, err = loadRecord(s.layout.State()); err != nil {
		return err
	}
	noted := false
	for _, d := range c.Documents {
		if !slices.Contains(c.Before, d) {
			noted = s.record.noteUndone(document.Envelope{Kind: d.Kind, Serial: d.Serial, Digest: d.Digest}) || noted
		}
	}
	// Nor must its closure, when that of before is back.
	if c.System != nil && s.record.Closure != c.System.Closure {
		s.record.Closure, noted = c.System.Closure, true
	}
	if !noted {
		return nil
	}
	s.step("save record")
	return s.record.save(s.layout.State())
}

// NoneIsPending is the error of what must wait for a pending commit.
func (s *Store) NoneIsPending() error {
	c, err := s.layout.PendingCommit()
	if c == nil {
		return err
	}
	return fmt.Errorf("%s is pending, want it confirmed or gone back, by itself at the latest on %s: flor status", c, c.Deadline.UTC().Format("2006-01-02 15:04:05 MST"))
}

// closureWaits is the error of a closure that waits for a pending commit: one that changes
// the whole installation brings its own.
func (s *Store) closureWaits() error {
	if c, err := s.layout.PendingCommit(); c != nil && c.System != nil {
		return err
	}
	return s.NoneIsPending()
}

// notPending is why the commit of an identity cannot be confirmed.
func (s *Store) notPending(id string, pending *hostdir.Commit) error {
	if pending != nil {
		return fmt.Errorf("commit %q is not pending, want %q: flor sync --confirm %s", id, pending.ID, pending.ID)
	}
	if undone, _ := s.layout.Undone(); undone != nil && undone.ID == id {
		return fmt.Errorf("commit %s has gone back, for %s in time: publish what is right, then flor sync", id, undone.Missing())
	}
	return fmt.Errorf("commit %q is not pending, and no other is: flor status", id)
}

// Reported are the versions of a set's documents.
func (s Set) Reported() []document.Reported {
	all := []document.Reported{document.ReportedOf(s.Document.Envelope)}
	if s.Policy != nil {
		all = append(all, document.ReportedOf(s.Policy.Envelope))
	}
	return all
}

func write(l hostdir.Layout, c hostdir.Commit) error {
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return atomicfile.File(l.CommitFile(), append(b, '\n'), 0o644)
}

// remove removes a file of the state directory, for good.
func (s *Store) remove(path string) error {
	s.step("remove " + filepath.Base(path))
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.sync()
}

// sync makes the entries of the state directory durable.
func (s *Store) sync() error {
	s.step("sync state")
	d, err := os.Open(string(s.layout))
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func (s *Store) step(name string) {
	if s.dir.Step != nil {
		s.dir.Step(name)
	}
}

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
