// Package tlog makes changes to a process's audit rows detectable. It keeps a tamper-evident log of
// the rows on the process's disk: a Merkle tree of their hashes (c2sp.org/tlog-tiles, kept by
// Tessera). The process signs the log's checkpoints with a key that only the log uses.
//
//	store   rows, each committed with its decision
//	log     row 0, row 1, …: a leaf of each, in the order of the store's revisions
//
// Rows are appended after their decisions, which do not wait for that. The last leaf contains the
// revision and key of its row, so that the log itself records where to continue: a crash at any
// point neither loses a row nor appends it twice.
//
// A Log owns three goroutines, which watch the store, append rows, and compare rows with the log.
// Goroutines of Tessera end soon after them.
package tlog

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/transparency-dev/tessera/api/layout"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/sys/unix"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/journal"
	"github.com/florete/florete/internal/secretfile"
	"github.com/florete/florete/providers/store"
)

// These are the files in the directory of a log, in addition to the files of tlog-tiles.
const (
	keyFile    = "key"     // signs checkpoints
	publicFile = "key.pub" // verifies them
	storeFile  = "store"   // whose rows it has
	lockFile   = "lock"
)

// Config configures a Log. All fields are required.
type Config struct {
	Dir    string // directory of the log
	Name   string // name of a new log: "<trust domain>/<kind>/<host>"
	Store  store.Store
	Prefix string                        // prefix of the keys of rows, followed by the time of the row
	Kept   func(now time.Time) time.Time // rows from before the returned time may have been archived
	Logger *slog.Logger
}

// Log is the tamper-evident log of a provider's audit rows. It contains a hash of each row, so that
// a changed or deleted row is noticed. This process appends to the log. Only one process at a time
// can do so.
type Log struct {
	Config
	Reader
	shelf *shelf

	// closeAfter is the constant of this name, unless a test has shortened it.
	closeAfter time.Duration

	// appended is the number that Appended returns.
	appended atomic.Int64

	// integrated is the number of rows in the tree. The newest checkpoint may be of a smaller tree.
	integrated atomic.Uint64

	// fault describes the fault that Fault returns, or is nil.
	fault atomic.Pointer[string]

	// incomplete is true if the revision of a row does not tell whether the log contains the row,
	// for example after the store was restored. Each row is then looked up in the log.
	incomplete atomic.Bool
}

// New returns the log in the directory that the Config names. If the log does not exist yet, Run
// creates its files.
func New(c Config) *Log {
	return &Log{Config: c, Reader: Reader{c.Dir}, shelf: newShelf(c.Dir), closeAfter: closeAfter}
}

// signer returns the signing key of the log. The key is made together with the log, and identifies
// the log.
func (l *Log) signer() (note.Signer, error) {
	path := filepath.Join(l.Config.Dir, keyFile)
	private, err := secretfile.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(l.Config.Dir, layout.CheckpointPath)); err == nil {
			return nil, fmt.Errorf("%s is gone, and hosts know this log by it: restore it, or remove the directory to begin another log", path)
		}
		secret, public, err := note.GenerateKey(rand.Reader, l.Name)
		if err != nil {
			return nil, err
		}
		// A log that has its private half has both.
		if err := atomicfile.File(filepath.Join(l.Config.Dir, publicFile), []byte(public+"\n"), 0o600); err != nil {
			return nil, err
		}
		private = []byte(secret + "\n")
		if err := atomicfile.File(path, private, 0o600); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	signer, err := note.NewSigner(strings.TrimSpace(string(private)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w: restore it, or remove the directory to begin another log", path, err)
	}
	return signer, nil
}

// Appended returns a revision of the state store. All audit rows that were stored up to that
// revision are in the log.
func (l *Log) Appended() int64 { return l.appended.Load() }

// Fault returns a description of a difference that Run has found between the audit rows in the
// state store and the log. If there is none, it returns "".
func (l *Log) Fault() string {
	if text := l.fault.Load(); text != nil {
		return *text
	}
	return ""
}

// retry is the pause after a failure, before Run tries again.
const retry = 5 * time.Second

// Run appends new audit rows to the log until ctx ends. It also regularly compares the rows in the
// state store with the log. It logs errors and tries again.
func (l *Log) Run(ctx context.Context) {
	journal.Every(ctx, retry, l.Logger, l.run, "rows are not in the tamper-evident audit log yet, trying again")
}

// lock makes this process the only one that appends to the log. The lock lasts until the returned
// function is called or the process ends.
func (l *Log) lock() (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(l.Config.Dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: another process appends to this log: %w", f.Name(), err), f.Close())
	}
	return func() { f.Close() }, nil
}
