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

// readers is how many connections stay open: making one, with its statements, takes longer
// than what most are for.
const readers = 16

// Store is a store.Store in a SQLite file.
type Store struct {
	write, read *sql.DB
	get, newest *sql.Stmt // of read
	list, pages *sql.Stmt // of read, of keys within bounds
	keep        int64

	// Of the one writer, which holds the place in writer.
	writer     chan struct{}
	conn       *sql.Conn // of write
	statements map[string]*sql.Stmt

	ctx   context.Context // ends with Close
	close context.CancelFunc
	sweep sync.WaitGroup
	wake  chan struct{} // a lease was made

	mu      sync.Mutex
	waiting []*job        // for the writer
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
	const pragmas = "?_pragma=busy_timeout(30000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate"
	name := (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath()}).String()
	write, err := sql.Open("sqlite", name+pragmas)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	write.SetMaxOpenConns(1)
	if err := upgrade(write); err != nil {
		return nil, errors.Join(fmt.Errorf("store %s: %w", path, err), write.Close())
	}
	read, err := sql.Open("sqlite", name+"?_pragma=busy_timeout(30000)&_pragma=query_only(1)")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store %s: %w", path, err), write.Close())
	}
	read.SetMaxIdleConns(readers)
	conn, err := write.Conn(context.Background())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store %s: %w", path, err), write.Close(), read.Close())
	}
	s := &Store{
		write: write, read: read, keep: o.Keep, conn: conn, writer: make(chan struct{}, 1), statements: map[string]*sql.Stmt{},
		wake: make(chan struct{}, 1), changed: make(chan struct{}),
	}
	s.get, err = read.Prepare("SELECT value, created, modified FROM kv WHERE key = ? AND " + live)
	if err == nil {
		s.newest, err = read.Prepare("SELECT value FROM meta WHERE name = 'revision'")
	}
	if err == nil {
		s.list, err = read.Prepare(bounded)
	}
	if err == nil {
		s.pages, err = read.Prepare(bounded + " LIMIT ?")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store %s: %w", path, err), write.Close(), read.Close())
	}
	s.ctx, s.close = context.WithCancel(context.Background())
	s.sweep.Go(s.sweeper)
	return s, nil
}

// Close ends watches with an error and closes the file.
func (s *Store) Close() error {
	s.close()
	s.sweep.Wait()
	s.writer <- struct{}{} // whoever writes has ended
	defer func() { <-s.writer }()
	for _, p := range s.statements {
		p.Close()
	}
	return errors.Join(s.get.Close(), s.newest.Close(), s.list.Close(), s.pages.Close(), s.read.Close(), s.conn.Close(), s.write.Close())
}

// next is a channel that is closed at the next revision.
func (s *Store) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}
