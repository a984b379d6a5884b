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

// Arm starts the process that rolls a change back if it is not confirmed (confirm.Supervise). It
// returns when that process is running.
type Arm func(context.Context) error

// ArmTimeout limits the time that Arm may take. It is short, because other processes cannot change
// documents until Arm returns.
const ArmTimeout = 8 * time.Second

// armError is an error that an Arm function returned.
type armError struct{ error }

// Begin puts an offer in force as the given change, which is rolled back unless it is confirmed.
// Before any document changes, Begin writes the change to disk and calls arm to start the process
// that rolls it back. Begin returns the pending change. If it returns both a change and an error,
// the change is pending nevertheless. If another change is pending, it returns an error.
func (s *Store) Begin(ctx context.Context, o Offer, c hostdir.Change, arm Arm) (*hostdir.Change, error) {
	unlock, err := lock(s.layout)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return s.begin(ctx, o, c, arm)
}

func (s *Store) begin(ctx context.Context, o Offer, c hostdir.Change, arm Arm) (*hostdir.Change, error) {
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
	if err := s.replace(o); err != nil {
		if n, unread := s.dir.Current(); unread == nil && n == c.Generation {
			return nil, errors.Join(err, s.remove(s.layout.ChangeFile()))
		}
		return &c, err
	}
	return &c, nil
}

// BeginSystem begins a change of the whole installation, such as a NixOS system. When
// BeginSystem returns, the change is on disk and arm has started the process that rolls it back.
// The caller then makes the change. The directory dir contains the documents of the new
// installation.
func BeginSystem(ctx context.Context, l hostdir.Layout, c hostdir.Change, dir string, arm Arm) (*hostdir.Change, error) {
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

// arm writes a change to disk and starts the process that can roll it back. If the process cannot
// be started, arm removes the change again.
func (s *Store) arm(ctx context.Context, c hostdir.Change, arm Arm) error {
	s.step("write change")
	if err := write(s.layout, c); err != nil {
		return err
	}
	s.step("arm")
	ctx, cancel := context.WithTimeout(ctx, ArmTimeout)
	defer cancel()
	if err := arm(ctx); err != nil {
		return errors.Join(&armError{err}, s.remove(s.layout.ChangeFile()))
	}
	return nil
}

// Rearm writes a pending change to disk after Clock.Rearm has computed its deadline for the current
// boot. If the change is no longer pending, Rearm does nothing.
func Rearm(l hostdir.Layout, c hostdir.Change) error {
	unlock, err := lock(l)
	if err != nil {
		return err
	}
	defer unlock()
	if p, err := l.PendingChange(); err != nil || p == nil || p.ID != c.ID {
		return err
	}
	return write(l, c)
}

// Extend makes the deadline of the pending change with this ID later, so that the duration left
// remains from now. The whole change lasts at most the duration most. Extend does nothing if the
// change is not pending, or if the deadline would become earlier.
func Extend(l hostdir.Layout, id string, left, most time.Duration) error {
	unlock, err := lock(l)
	if err != nil {
		return err
	}
	defer unlock()
	c, err := l.PendingChange()
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

// Confirm makes the pending change with this ID permanent. Before that, it calls check, unless
// check is nil. If check returns an error, the change stays pending and Confirm returns that error.
// Confirm also returns an error if this change is not pending. If step is not nil, it is called
// before each change on disk, for tests.
func Confirm(l hostdir.Layout, id string, step func(string), check func(hostdir.Change) error) error {
	s := Store{layout: l, dir: dirOf(l, step)}
	return s.Confirm(id, check)
}

// Confirm is like the function Confirm. It does not decode the documents in force again if they are
// those of the Store.
func (s *Store) Confirm(id string, check func(hostdir.Change) error) error {
	unlock, err := lock(s.layout)
	if err != nil {
		return err
	}
	defer unlock()
	c, err := s.layout.PendingChange()
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
	return s.remove(s.layout.ChangeFile())
}

// inForce returns an error if the documents of a change, or its system, are not in force.
func (s *Store) inForce(c hostdir.Change) error {
	if c.System != nil {
		if found := c.System.InForce(); found != c.System.To {
			return fmt.Errorf("change %s: %s is not in force, but %q: it goes back by itself", c.ID, c.System.To, found)
		}
		return nil
	}
	held, err := s.held()
	if err == nil && !slices.Equal(held.Reported(), c.Documents) {
		err = fmt.Errorf("change %s: it is not in force, and goes back: flor sync", c.ID)
	}
	return err
}

// Undo rolls the pending change back and returns it. It returns nil if there is no pending change,
// or if the change has not changed any document yet. If the change is of the whole installation,
// the caller must restore the old installation first. An interrupted Undo can be repeated. If step
// is not nil, it is called before each change on disk, for tests.
func Undo(l hostdir.Layout, step func(string)) (*hostdir.Change, error) {
	unlock, err := insist(l)
	if err != nil {
		return nil, err
	}
	defer unlock()
	s := Store{layout: l, dir: dirOf(l, step)}
	c, err := l.PendingChange()
	if c == nil || err != nil {
		return nil, err
	}
	n, err := s.dir.Current()
	if err != nil {
		return nil, err
	}
	if n == c.Generation && c.System == nil {
		return nil, s.remove(l.ChangeFile())
	}
	// A failure to record this, for example on a full disk, must not prevent the rollback.
	unnoted := s.noteUndone(*c)
	if held, err := s.held(); c.Generation > 0 && (err != nil || !slices.Equal(held.Reported(), c.Before)) {
		if _, err := s.dir.Restore(c.Generation); err != nil {
			return nil, err
		}
	}
	s.step("rename change")
	if err := os.Rename(l.ChangeFile(), l.UndoneFile()); err != nil {
		return nil, err
	}
	return c, errors.Join(unnoted, s.sync())
}

// noteUndone records the documents of a change that is about to be rolled back, so that the host
// does not accept them from the network again.
func (s *Store) noteUndone(c hostdir.Change) (err error) {
	if s.record, err = loadRecord(s.layout.State()); err != nil {
		return err
	}
	noted := false
	for _, d := range c.Documents {
		if !slices.Contains(c.Before, d) {
			noted = s.record.noteUndone(document.Envelope{Kind: d.Kind, Serial: d.Serial, Digest: d.Digest}) || noted
		}
	}
	// The same holds for its closure, when the old one is back.
	if c.System != nil && s.record.Closure != c.System.Closure {
		s.record.Closure, noted = c.System.Closure, true
	}
	if !noted {
		return nil
	}
	s.step("save record")
	return s.record.save(s.layout.State())
}

// NoneIsPending returns nil if no change is pending, and otherwise an error that describes the
// pending change.
func (s *Store) NoneIsPending() error {
	c, err := s.layout.PendingChange()
	if c == nil {
		return err
	}
	return fmt.Errorf("%s is pending, want it confirmed or gone back, by itself at the latest on %s: flor status", c, c.Deadline.UTC().Format("2006-01-02 15:04:05 MST"))
}

// closureWaits returns an error if a changed closure must wait for the end of the pending change.
// It need not wait if the change is for the whole installation, because the closure is then part of
// the change.
func (s *Store) closureWaits() error {
	if c, err := s.layout.PendingChange(); c != nil && c.System != nil {
		return err
	}
	return s.NoneIsPending()
}

// notPending returns the error for an attempt to confirm a change that is not pending.
func (s *Store) notPending(id string, pending *hostdir.Change) error {
	if pending != nil {
		return fmt.Errorf("change %q is not pending, want %q: flor sync --confirm %s", id, pending.ID, pending.ID)
	}
	if undone, _ := s.layout.Undone(); undone != nil && undone.ID == id {
		return fmt.Errorf("change %s has gone back, for %s in time: publish what is right, then flor sync", id, undone.Missing())
	}
	return fmt.Errorf("change %q is not pending, and no other is: flor status", id)
}

// Reported returns the versions of the documents in a set, as a host's report lists them: the
// manifest and, if there is one, the policy.
func (s Set) Reported() []document.Reported {
	all := []document.Reported{document.ReportedOf(s.Document.Envelope)}
	if s.Policy != nil {
		all = append(all, document.ReportedOf(s.Policy.Envelope))
	}
	return all
}

func write(l hostdir.Layout, c hostdir.Change) error {
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return atomicfile.File(l.ChangeFile(), append(b, '\n'), 0o644)
}

// remove removes a file from the state directory and flushes the directory to disk.
func (s *Store) remove(path string) error {
	s.step("remove " + filepath.Base(path))
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.sync()
}

// sync flushes the state directory to disk.
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

// beginUnattended puts an offer in force as a change that activation itself confirms when a
// provider answers. Activation is confined and cannot read the boot ID, so the deadline is first
// measured with the wall clock. The process that supervises the change then adds the clock of the
// boot.
func (s *Store) beginUnattended(ctx context.Context, o Offer) error {
	c := Clock{Wall: time.Now()}.Change(s.Timeout)
	c.Unattended = true
	_, err := s.begin(ctx, o, c, s.Arm)
	return err
}

// dropUnchanged removes an unattended change that has not changed any document, because activation
// died too early. The caller must hold the lock.
func (s *Store) dropUnchanged() error {
	c, err := s.layout.PendingChange()
	if c == nil || err != nil || !c.Unattended || c.Generation != s.set.Generation {
		return nil // an error is reported by callers that find the change pending
	}
	return s.remove(s.layout.ChangeFile())
}

// Unproved returns the change that activation has begun without an operator and that still waits
// for the answer of a provider. It returns nil if there is none. If undone is false, the change is
// pending, and an answer makes it permanent. If undone is true, the change was rolled back, and an
// answer shows that the change had cut the host off from its providers.
func (s *Store) Unproved() (c *hostdir.Change, undone bool) {
	c, err := s.layout.PendingChange()
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
	if !slices.Equal(s.set.Reported(), under) { // others are in force, or are just being put in force
		return nil, false
	}
	return c, undone
}

// NoteAnswered records that a provider has answered after the change with this ID was rolled back.
// The answer shows that the change had cut the host off. If another change was rolled back last,
// NoteAnswered does nothing.
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

// Redo puts the documents of the last change in force again, if that change has this ID and was
// rolled back. The function again receives these documents and decides how: if it returns true,
// they are put in force as a new change that can be rolled back, and otherwise permanently. If the
// last change has another ID, Redo does nothing.
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

// contents returns the digests of the documents in a set.
func (s Set) contents() (digests []string) {
	for _, d := range s.Reported() {
		digests = append(digests, d.Digest)
	}
	return digests
}
