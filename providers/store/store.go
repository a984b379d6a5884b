// Package store defines the state engine of providers: keys with revisions, compare-and-swap,
// transactions, leases, and watching from a revision. Providers keep all state that must survive a
// crash in it.
package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// Errors that every engine returns, possibly wrapped.
var (
	ErrNotFound  = errors.New("no such key")
	ErrConflict  = errors.New("the state changed in between")
	ErrCompacted = errors.New("the revision is older than what is kept")

	// ErrUnavailable is the error of a shared engine that does not answer now. The request itself
	// is valid. A commit that ends with it may have been made.
	ErrUnavailable = errors.New("the store does not answer")

	// ErrFull is the error of an engine that accepts no changes until somebody makes room. It can
	// be read, and nothing was changed. It is an ErrUnavailable.
	ErrFull = fmt.Errorf("the store is full: %w", ErrUnavailable)

	// ErrDamaged is the error of a file that cannot be read, or that is no longer at its path.
	// Nothing was changed. It is an ErrUnavailable.
	ErrDamaged = fmt.Errorf("the state file is damaged or gone: %w", ErrUnavailable)

	// ErrMoved is the error of a store that was frozen because its state moved to another store. It
	// is an ErrUnavailable.
	ErrMoved = fmt.Errorf("the state has moved to another store: %w", ErrUnavailable)
)

// Store is a state engine. Revisions belong to the whole store. They start at 1 and grow with each
// transaction that changes something, by one, or by more if others share the engine.
type Store interface {
	// Get reads one key. The error is ErrNotFound when it is absent or expired.
	Get(ctx context.Context, key string) (Entry, error)

	// List reads the keys that start with prefix, sorted, all at the revision that it returns.
	List(ctx context.Context, prefix string) ([]Entry, int64, error)

	// Page reads at most the given number of keys that start with prefix and come after another
	// key, sorted. It lets a caller go through many keys with few in memory.
	Page(ctx context.Context, prefix, after string, most int) ([]Entry, error)

	// Snapshot calls read with the keys that start with prefix, sorted, all at the revision that it
	// passes. Few of them are in memory at a time. If the revision is compacted meanwhile, entries
	// end with ErrCompacted, and the caller must begin anew.
	Snapshot(ctx context.Context, prefix string, read func(revision int64, entries iter.Seq2[Entry, error]) error) error

	// Commit makes all changes of the transaction at once and durably, and returns its revision.
	// The error is ErrConflict if a condition does not hold; then nothing changed. No transaction
	// takes effect twice.
	Commit(ctx context.Context, txn Txn) (int64, error)

	// Watch yields the changes to keys that start with prefix, in order, beginning with the first
	// after a revision, until ctx ends. A change that a later one of the same key replaced may be
	// left out. It yields ErrCompacted if the revision is no longer available; then call List and
	// watch from its revision.
	Watch(ctx context.Context, prefix string, after int64) iter.Seq2[Event, error]

	// Lease makes a lease that ends ttl after the last KeepAlive, or later. Keys attached to it are
	// deleted with it. The revision that created such a key is its holder's fencing token: it only
	// grows, and a Cond with it fails once the lease has ended.
	Lease(ctx context.Context, ttl time.Duration) (LeaseID, error)
	KeepAlive(ctx context.Context, id LeaseID) error
	Revoke(ctx context.Context, id LeaseID) error

	Close() error
}

// Local returns a store for reads that may be a while behind. If the engine is shared, it can still
// be read while the engine does not answer.
func Local(s Store) Store {
	if l, ok := s.(interface{ Local() Store }); ok {
		return l.Local()
	}
	return s
}

// Reading is the part of a Store that only reads.
type Reading interface {
	Get(ctx context.Context, key string) (Entry, error)
	List(ctx context.Context, prefix string) ([]Entry, int64, error)
	Watch(ctx context.Context, prefix string, after int64) iter.Seq2[Event, error]
}

// Sibling returns the tree of another kind in the engine of which s is a tree, and whether the
// engine has trees. It can be read until s is closed, and transactions of s may have conditions
// with its name.
func Sibling(s Store, tree string) (Reading, bool) {
	t, ok := s.(interface{ Sibling(tree string) Reading })
	if !ok {
		return nil, false
	}
	return t.Sibling(tree), true
}

// LeaseID names a lease; zero means none.
type LeaseID int64

// Entry is a key's value with the revisions that created and last changed it.
type Entry struct {
	Key               string
	Value             []byte
	Created, Modified int64
}

// Limits of one transaction that every engine accepts: the number of operations, and the total size
// of values in bytes.
const (
	MaxOps   = 100
	MaxBytes = 256 << 10
)

// Txn changes keys if all conditions hold.
type Txn struct {
	If   []Cond
	Then []Op
}

// Cond holds if Key was last changed by revision Modified; zero means that the key is absent.
type Cond struct {
	Key      string
	Modified int64

	// Tree names the sibling with the key; empty means the store of the transaction. An engine
	// without trees refuses it.
	Tree string
}

// Op puts Value at Key, or deletes Key.
type Op struct {
	Key    string
	Value  []byte
	Delete bool
	Lease  LeaseID // deletes the key when it ends; zero for never
}

// Put returns the operation that sets key.
func Put(key string, value []byte) Op { return Op{Key: key, Value: value} }

// Delete returns the operation that removes key.
func Delete(key string) Op { return Op{Key: key, Delete: true} }

// Event is one change of one key. A deletion has neither Value nor Created.
type Event struct {
	Entry
	Deleted bool
}
