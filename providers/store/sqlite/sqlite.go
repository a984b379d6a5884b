// Package sqlite is the embedded state engine: one SQLite file in WAL mode, with
// synchronous=FULL, so that what Commit returned survives power loss.
//
// Besides the current keys it keeps the changes of the last revisions for Watch.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/florete/florete/providers/store"
)

// Options of a store; the zero value is useful.
type Options struct {
	// Keep is how many revisions Watch can go back; zero for 100. Their changes take as
	// much room again as the values that they set.
	Keep int64
}

// Store is a store.Store in a SQLite file.
type Store struct {
	write, read *sql.DB // write has one connection: the one writer
	keep        int64

	ctx   context.Context // ends with Close
	close context.CancelFunc
	sweep sync.WaitGroup
	wake  chan struct{} // a lease was made

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each revision
}

var _ store.Store = (*Store)(nil)

// Open opens the store at path and makes it when there is none. An older schema is
// upgraded in one transaction; a newer one is refused.
func Open(path string, o Options) (*Store, error) {
	if o.Keep == 0 {
		o.Keep = 100
	}
	// The file holds what others must not read, and SQLite gives its companions
	// the same mode.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	f.Close()
	const pragmas = "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate"
	name := (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath()}).String()
	write, err := sql.Open("sqlite", name+pragmas)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	write.SetMaxOpenConns(1)
	if err := upgrade(write); err != nil {
		return nil, errors.Join(fmt.Errorf("store %s: %w", path, err), write.Close())
	}
	read, err := sql.Open("sqlite", name+"?_pragma=busy_timeout(10000)&_pragma=query_only(1)")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store %s: %w", path, err), write.Close())
	}
	s := &Store{write: write, read: read, keep: o.Keep, wake: make(chan struct{}, 1), changed: make(chan struct{})}
	s.ctx, s.close = context.WithCancel(context.Background())
	s.sweep.Go(s.sweeper)
	return s, nil
}

// Close ends watches with an error and closes the file.
func (s *Store) Close() error {
	s.close()
	s.sweep.Wait()
	return errors.Join(s.read.Close(), s.write.Close())
}

// update runs f in a write transaction. A revision that f made is announced.
func (s *Store) update(ctx context.Context, f func(*tx) error) (int64, error) {
	sqlTx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer sqlTx.Rollback()
	t := &tx{ctx: ctx, Tx: sqlTx}
	before, err := t.meta("revision")
	if err != nil {
		return 0, err
	}
	t.revision = before
	if err := t.expire(); err != nil {
		return 0, err
	}
	if err := f(t); err != nil {
		return 0, err
	}
	if t.revision != before {
		if err := t.finish(s.keep); err != nil {
			return 0, err
		}
	}
	if err := sqlTx.Commit(); err != nil {
		return 0, err
	}
	if t.revision != before {
		s.mu.Lock()
		close(s.changed)
		s.changed = make(chan struct{})
		s.mu.Unlock()
	}
	return t.revision, nil
}

// next is a channel that is closed at the next revision.
func (s *Store) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}
