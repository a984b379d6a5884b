package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/florete/florete/internal/journal"
	"github.com/florete/florete/internal/secretfile"
	"github.com/florete/florete/providers/move"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
)

// keep is the number of revisions that a state file keeps for watches. The audit log needs the most
// recent revisions.
const keep = 1000

// errMoved is the error of a process whose state has moved to the shared store.
var errMoved = errors.New("the state is in the store that provider hosts share now")

// elsewhere is the error for a state that this process does not serve, or does not serve yet. A
// caller that needs the state waits.
type elsewhere struct{ error }

func (e elsewhere) Unwrap() error { return e.error }

// open opens the state of a kind. The state is in the tree that the policy names, or in the file
// from which it is still to be moved.
func (s state) open(ctx context.Context, kind string) (store.Store, error) {
	file, mark, err := s.openFile(ctx, kind)
	shared := s.policy.Store
	switch {
	case err != nil:
		return nil, err
	case shared == nil && file == nil:
		if err := s.gone(kind); err != nil {
			return nil, err
		}
		return sqlite.Open(storePath(s.Dir(kind)), sqlite.Options{Keep: keep})
	case shared == nil && mark.Host == "":
		return file, nil
	case shared == nil:
		return nil, errors.Join(elsewhere{fmt.Errorf("%s: its state moved to the store at %q, %s, and the policy names no store: name that in providers.store; to go on from a backup of it, %s",
			storePath(s.Dir(kind)), mark.To, mark.Time.Format("2006-01-02"), s.aside(kind))}, file.Close())
	case file != nil && mark.Host == "" && shared.From[kind] == s.policy.Host:
		if err := s.unmoved(ctx, kind); err != nil {
			return nil, errors.Join(err, file.Close())
		}
		return file, nil
	case file != nil:
		if err := file.Close(); err != nil {
			return nil, err
		}
		if mark.Host == "" {
			return nil, elsewhere{fmt.Errorf("%s: has state that is not in the store which the policy names: add this host to providers.store.from = [ %q ], which moves it there; to leave it behind, %s",
				storePath(s.Dir(kind)), s.policy.Host, s.aside(kind))}
		}
	}
	db, err := s.openTree(kind)
	if err != nil {
		return nil, err
	}
	if err := s.whole(ctx, db, kind); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// unmoved refuses a state file if the shared store already contains a state that was moved there.
// The file is then an older copy of this host's state, or belongs to another host.
func (s state) unmoved(ctx context.Context, kind string) error {
	to, err := s.openTree(kind)
	if err != nil {
		return nil // the tree is not set up yet, and no process serves from it
	}
	defer to.Close()
	there, err := move.Of(ctx, to)
	if err != nil || there.Host == "" { // likewise
		return nil
	}
	return elsewhere{fmt.Errorf("%s: the store has the state of kind %q already, of %s since %s, and this is another: %s",
		storePath(s.Dir(kind)), kind, there.Host, there.Time.Format("2006-01-02"), s.aside(kind))}
}

// aside returns the command with which an operator moves a state file out of the way.
func (s state) aside(kind string) string {
	dir := s.Dir(kind)
	return fmt.Sprintf("run: mkdir -m 700 %[1]s/aside && mv %[1]s/state.db* %[1]s/seal.key %[1]s/aside", dir)
}

// gone returns an error if a state file has disappeared. The sealing key is made after the state
// file, so that its presence shows that the file has existed.
func (s state) gone(kind string) error {
	dir := s.Dir(kind)
	_, err := os.Stat(keyPath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return elsewhere{fmt.Errorf("%s: the state was removed, want it back: put the file there; to go on from a backup, run: mkdir -m 700 %[2]s/aside && mv %[2]s/seal.key %[2]s/aside, then: florctl state restore",
		storePath(dir), dir)}
}

// openFile opens the state file of a kind, if the file exists. It also returns the mark that a move
// to the shared store leaves in the file.
func (s state) openFile(ctx context.Context, kind string) (*sqlite.Store, move.Mark, error) {
	path := storePath(s.Dir(kind))
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, move.Mark{}, nil
	} else if err != nil {
		return nil, move.Mark{}, err
	}
	file, err := sqlite.Open(path, sqlite.Options{Keep: keep})
	if err != nil {
		return nil, move.Mark{}, err
	}
	mark, err := move.Of(ctx, file)
	if err != nil {
		return nil, mark, errors.Join(err, file.Close())
	}
	return file, mark, nil
}

// whole returns an error if a tree of the shared store does not contain the complete state of a
// kind.
func (s state) whole(ctx context.Context, db store.Store, kind string) error {
	host, from := s.policy.Host, s.policy.Store.From[kind]
	under, err := move.Under(ctx, db)
	if err != nil {
		return err
	}
	if under.Host != "" {
		return elsewhere{fmt.Errorf("the state of kind %q is moving from %s into the store: it goes on when the process there runs", kind, under.Host)}
	}
	there, err := move.Of(ctx, db)
	if err != nil || there.Host != "" {
		return err
	}
	file, mark, err := s.openFile(ctx, kind)
	if file != nil {
		err = errors.Join(err, file.Close())
	}
	switch {
	case err != nil:
		return err
	case mark.Host != "":
		return elsewhere{fmt.Errorf("%s: %w: to go on from a backup of it, %s, then florctl state restore", storePath(s.Dir(kind)), move.ErrLost, s.aside(kind))}
	case from != "" && from != host:
		return elsewhere{fmt.Errorf("the state of kind %q is on %s, and has not moved into the store yet: deploy that", kind, from)}
	case from == host && file == nil:
		return move.Nothing(ctx, db, host)
	case from == host:
		return elsewhere{fmt.Errorf("the state of kind %q is in %s, and has not moved into the store yet: its process does that", kind, storePath(s.Dir(kind)))}
	}
	return nil
}

// openStore opens the state of this process, if this process is to serve it. If a move was
// interrupted, openStore completes the move first.
func (p *process) openStore(ctx context.Context) (db store.Store, err error) {
	waited := p.wait(ctx, "its state", func() error {
		if failed := p.openPolicies(); failed != nil {
			return failed
		}
		p.shared = p.state().policy.Store != nil
		db, err = p.state().open(ctx, p.kind)
		if errors.As(err, new(elsewhere)) || errors.Is(err, store.ErrUnavailable) {
			if failed := p.complete(ctx); failed != nil {
				return errors.Join(err, failed)
			}
			return err
		}
		return nil
	})
	return db, errors.Join(waited, err)
}

// complete completes the move of this host's state file, if the file is already frozen.
func (p *process) complete(ctx context.Context) error {
	s := p.state()
	file, mark, err := s.openFile(ctx, p.kind)
	if file == nil || err != nil {
		return err
	}
	defer file.Close()
	if mark.Host == "" || s.policy.Store == nil {
		return nil
	}
	to, err := s.openTree(p.kind)
	if err != nil {
		return err
	}
	defer to.Close()
	if under, err := move.Under(ctx, to); err != nil || under.Host != s.policy.Host {
		return err
	}
	return p.mover(file, to, nil).Run(ctx)
}

// fromFile reports whether the process serves its state from a file.
func (p *process) fromFile() bool {
	_, file := p.store.(*sqlite.Store)
	return file
}

// moveOut moves the state to the place in the policy while the process serves it. It returns an
// error when the process must restart. Temporary failures are logged once.
func (p *process) moveOut(ctx context.Context, failed *journal.Once) error {
	s := p.state()
	switch {
	case s.policy.Store == nil:
		return nil
	case s.policy.Store.From[p.kind] != s.policy.Host:
		return errors.New("the policy names a store, and not to move the state there: this process is started again")
	}
	err := p.moveNow(ctx, s)
	if err == nil {
		p.log.Info("the state has moved into the store that provider hosts share")
		return errMoved
	}
	if errors.As(s.unmoved(ctx, p.kind), new(elsewhere)) {
		return err
	}
	// A unit from before the change has no certificates for the shared store.
	if errors.Is(err, fs.ErrPermission) && !p.shared {
		return fmt.Errorf("%w: this process is started again, which gives it those", err)
	}
	if ctx.Err() == nil && failed.News(err) {
		p.log.Warn("the state is served from its file, and does not move", "reason", err)
	}
	return nil
}

func (p *process) moveNow(ctx context.Context, s state) error {
	secret, err := secretfile.ReadFile(keyPath(p.dir()))
	if err != nil {
		return fmt.Errorf("sealing key: %w", err)
	}
	to, err := s.openTree(p.kind)
	if err != nil {
		return err
	}
	defer to.Close()
	return p.mover(p.store.(*sqlite.Store), to, secret).Run(ctx)
}

func (p *process) mover(file *sqlite.Store, to store.Store, secret []byte) move.Move {
	s := p.state()
	return move.Move{
		File: file, To: to, Endpoints: s.policy.Store.Endpoints, Host: s.policy.Host, Kind: p.kind, State: stateOf(p.kind),
		Secret: secret, Named: s.named(p.kind),
		Opened: func(keys sealedstore.RingKeys) error { return save(p.dir(), keys) },
		Copied: func(changes int) { p.log.Info("copied into the store that provider hosts share", "changes", changes) },
	}
}
