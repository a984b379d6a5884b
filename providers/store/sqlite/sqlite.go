// Package sqlite implements the embedded state store: a store.Store in one SQLite file. The file is
// in WAL mode with synchronous=FULL, so that a transaction survives a power loss once Commit has
// returned.
//
// Besides the current keys, the file contains the most recent changes, which Watch reads.
//
// A Store owns one goroutine, which ends leases. Close waits for it.
package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"

	"github.com/florete/florete/providers/store"
)

// Options configures a Store. All fields may be zero.
type Options struct {
	// Keep is the number of revisions whose changes are kept for Watch. If it is zero, 100
	// revisions are kept.
	Keep int64
}

// readers is the number of connections that stay open for reading. Opening a connection and its
// statements takes longer than most reads.
const readers = 16

// Store is a store.Store whose state is a SQLite file.
type Store struct {
	read        *sql.DB
	newest      *sql.Stmt // of read
	list, pages *sql.Stmt // of read, of keys within bounds
	path        string
	file        os.FileInfo // at path, when it was opened
	name        string      // of the file, for those who read
	keep        int64

	// The fields below belong to the only writer, which holds the place in writer.
	writer  chan struct{}
	writing *conn
	clock   int64 // of the last transaction, Unix milliseconds; zero before the first

	ctx   context.Context // ends with Close
	close context.CancelFunc
	sweep sync.WaitGroup
	wake  chan struct{} // a lease was made

	mu      sync.Mutex
	closed  bool
	idle    []*conn       // for those who read a key
	waiting []*job        // for the writer
	changed chan struct{} // closed and replaced at each revision
}

var errClosed = errors.New("the store was closed")

var _ store.Store = (*Store)(nil)

// Open opens the store in the given file, and creates the file if it does not exist. If the file
// has an older schema, Open upgrades it in one transaction. A newer schema is an error.
func Open(path string, o Options) (*Store, error) {
	o.Keep = cmp.Or(o.Keep, 100)
	// The file's content is not for other accounts. SQLite gives its companion files the same mode.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	is, err := f.Stat()
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	const pragmas = "?_pragma=busy_timeout(30000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=wal_autocheckpoint(4000)&_txlock=immediate"
	name := (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath()}).String()
	s := &Store{
		path: path, file: is, name: name + "?_pragma=busy_timeout(30000)&_pragma=query_only(1)", keep: o.Keep,
		writer: make(chan struct{}, 1), wake: make(chan struct{}, 1), changed: make(chan struct{}),
	}
	if err := s.open(name + pragmas); err != nil {
		return nil, errors.Join(fmt.Errorf("store %s: %w", path, s.damaged(err)), s.closeFile())
	}
	s.ctx, s.close = context.WithCancel(context.Background())
	s.sweep.Go(s.sweeper)
	s.sweep.Go(s.follow)
	return s, nil
}

// open opens the file with one connection for writing and many for reading.
func (s *Store) open(writing string) error {
	write, err := sql.Open("sqlite", writing)
	if err != nil {
		return err
	}
	defer write.Close()
	if err := upgrade(write); err != nil {
		return err
	}
	if s.writing, err = connect(write, writing); err != nil {
		return err
	}
	if s.read, err = sql.Open("sqlite", s.name); err != nil {
		return err
	}
	s.read.SetMaxIdleConns(readers)
	for _, p := range []struct {
		made  **sql.Stmt
		query string
	}{{&s.newest, "SELECT value FROM meta WHERE name = 'revision'"}, {&s.list, bounded}, {&s.pages, bounded + " LIMIT ?"}} {
		if *p.made, err = s.read.Prepare(p.query); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the file. Watches of the store end with an error.
func (s *Store) Close() error {
	s.close()
	s.sweep.Wait()
	s.writer <- struct{}{} // whoever writes has ended
	defer func() { <-s.writer }()
	return s.closeFile()
}

func (s *Store) closeFile() (err error) {
	s.mu.Lock()
	s.closed = true
	idle := s.idle
	s.idle = nil
	s.mu.Unlock()
	for _, c := range idle {
		err = errors.Join(err, c.Close())
	}
	if s.read != nil {
		err = errors.Join(err, s.read.Close()) // with its statements
	}
	if s.writing != nil {
		err = errors.Join(err, s.writing.Close())
	}
	return err
}

// next returns a channel that is closed when the next revision is made.
func (s *Store) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// announce wakes all watches.
func (s *Store) announce() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}
