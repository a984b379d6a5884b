// Package store is the state engine of providers: keys with revisions, compare
// and swap, transactions, leases, and watching from a revision. Providers keep
// everything in it that must outlive a crash.
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

	// ErrUnavailable is of an engine that others keep: it does not answer now, and nothing is
	// wrong with what was requested. A commit that ends so may have been made.
	ErrUnavailable = errors.New("the store does not answer")

	// ErrFull is of an engine that takes no more until somebody makes room: it can be read, and
	// nothing was changed. It is an ErrUnavailable.
	ErrFull = fmt.Errorf("the store is full: %w", ErrUnavailable)

	// ErrDamaged is of a file that cannot be read any more, or is not at its path. Nothing is
	// changed. It is an ErrUnavailable.
	ErrDamaged = fmt.Errorf("the state file is damaged or gone: %w", ErrUnavailable)

	// ErrMoved is of a store that was frozen, since its state moved to another. It is an
	// ErrUnavailable.
	ErrMoved = fmt.Errorf("the state has moved to another store: %w", ErrUnavailable)
)

// Store is a state engine. Revisions are of the whole store, start at 1 and grow with each
// transaction that changes something: by one, or more where others share the engine.
type Store interface {
	// Get reads one key. The error is ErrNotFound when it is absent or expired.
	Get(ctx context.Context, key string) (Entry, error)

	// List reads the keys that start with prefix, sorted, all at the revision
	// it returns.
	List(ctx context.Context, prefix string) ([]Entry, int64, error)

	// Page reads at most so many of the keys that start with prefix and come after
	// another, sorted. Who goes through many keys holds few of them at a time.
	Page(ctx context.Context, prefix, after string, most int) ([]Entry, error)

	// Snapshot calls read with the keys that start with prefix, sorted, all at the revision
	// it is given. Few of them are in memory at a time. What was compacted meanwhile ends
	// them with ErrCompacted: begin anew.
	Snapshot(ctx context.Context, prefix string, read func(revision int64, entries iter.Seq2[Entry, error]) error) error

	// Commit makes all changes of the transaction at once and durably, and
	// returns its revision. The error is ErrConflict when a condition does not
	// hold; then nothing changed. No transaction is made twice.
	Commit(ctx context.Context, txn Txn) (int64, error)

	// Watch yields the changes to keys that start with prefix, in order,
	// beginning with the first after a revision, until ctx ends. What a later change
	// of the same key undid may be left out. It yields ErrCompacted when that is no
	// longer possible; then List and watch anew.
	Watch(ctx context.Context, prefix string, after int64) iter.Seq2[Event, error]

	// Lease makes a lease that ends by itself ttl after the last KeepAlive, or later. Keys
	// attached to it are deleted with it. The revision that made such a key is its holder's
	// fencing token: it only grows, and a Cond with it fails once the lease has ended.
	Lease(ctx context.Context, ttl time.Duration) (LeaseID, error)
	KeepAlive(ctx context.Context, id LeaseID) error
	Revoke(ctx context.Context, id LeaseID) error

	Close() error
}

// Local is a store for what may be read as it was a while ago: of one that others keep it is
// what can still be read where the engine does not answer.
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

// Sibling returns the tree of another kind in the engine that s is a tree of, and whether the
// engine has trees. It can be read until s is closed, and transactions of s may have conditions
// with its name.
func Sibling(s Store, tree string) (Reading, bool) {
	t, ok := s.(interface{ Sibling(tree string) Reading })
	if !ok {
		return nil, false
	}
	return t.Sibling(tree), true
}

// LeaseID names a lease; zero is none.
type LeaseID int64

// Entry is a key's value and the revisions that made and last changed it.
type Entry struct {
	Key               string
	Value             []byte
	Created, Modified int64
}

// What every engine takes in one transaction: so many operations, and so many bytes of
// values in all.
const (
	MaxOps   = 100
	MaxBytes = 256 << 10
)

// Txn changes keys when every condition holds.
type Txn struct {
	If   []Cond
	Then []Op
}

// Cond holds when Key was last changed by revision Modified; zero means that the
// key is absent.
type Cond struct {
	Key      string
	Modified int64

	// Tree names the sibling that has the key; empty for the store of the transaction. An engine
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

// Put is the operation that sets key.
func Put(key string, value []byte) Op { return Op{Key: key, Value: value} }

// Delete is the operation that removes key.
func Delete(key string) Op { return Op{Key: key, Delete: true} }

// Event is one change of one key. A deletion has neither Value nor Created.
type Event struct {
	Entry
	Deleted bool
}
