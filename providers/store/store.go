// Package store defines the interface of a provider's state store, in which providers keep all
// state that must survive a crash. A store has keys with revisions, compare-and-swap, transactions,
// leases, and watching from a revision.
package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// These are errors that the stores of every engine return, possibly wrapped.
var (
	ErrNotFound  = errors.New("no such key")
	ErrConflict  = errors.New("the state changed in between")
	ErrCompacted = errors.New("the revision is older than what is kept")

	// ErrUnavailable is the error of a store that does not answer now, although the request is
	// valid. A commit that fails with it may nevertheless have taken effect.
	ErrUnavailable = errors.New("the store does not answer")

	// ErrFull is the error of a store that has no room for changes. Nothing was changed, and the
	// store can still be read. errors.Is reports it as an ErrUnavailable too.
	ErrFull = fmt.Errorf("the store is full: %w", ErrUnavailable)

	// ErrDamaged is the error of a store whose file cannot be read, or is no longer at its path.
	// Nothing was changed. errors.Is reports it as an ErrUnavailable too.
	ErrDamaged = fmt.Errorf("the state file is damaged or gone: %w", ErrUnavailable)

	// ErrMoved is the error of a store that was frozen because its state moved to another store.
	// errors.Is reports it as an ErrUnavailable too.
	ErrMoved = fmt.Errorf("the state has moved to another store: %w", ErrUnavailable)
)

// Store is a database of keys and values with transactions, in which a provider keeps its state.
// Each transaction that changes something has a revision, a number that grows by at least one from
// each such transaction to the next. The first change has revision 1.
type Store interface {
	// Get reads one key. The error is ErrNotFound if the key is absent or has expired.
	Get(ctx context.Context, key string) (Entry, error)

	// List reads the keys that start with prefix, sorted. It also returns the revision at which all
	// of them were read.
	List(ctx context.Context, prefix string) ([]Entry, int64, error)

	// Page reads the keys that start with prefix and come after a given key, sorted. It returns the
	// number of keys given by most, so that a caller can go through many keys with few of them in
	// memory, and fewer only if there are no more.
	Page(ctx context.Context, prefix, after string, most int) ([]Entry, error)

	// Snapshot calls the function read with all keys that start with prefix, sorted, as of one
	// revision. Only few of the keys are in memory at a time. If the revision is compacted
	// meanwhile, the sequence of entries ends with ErrCompacted, and the caller must begin again.
	Snapshot(ctx context.Context, prefix string, read func(revision int64, entries iter.Seq2[Entry, error]) error) error

	// Commit applies all changes of a transaction together and durably, and returns the revision.
	// If a condition does not hold, the error is ErrConflict, and nothing is changed. No
	// transaction takes effect twice.
	Commit(ctx context.Context, txn Txn) (int64, error)

	// Watch yields the changes to keys that start with prefix, in order, until ctx ends. It begins
	// with the first change after the given revision. A change may be left out if a later change of
	// the same key has replaced it. If the revision is no longer available, Watch yields
	// ErrCompacted. The caller must then call List, and watch from the revision that List returns.
	Watch(ctx context.Context, prefix string, after int64) iter.Seq2[Event, error]

	// Lease makes a lease. The lease ends when KeepAlive was not called for the duration ttl, or
	// some time after that. Keys attached to the lease are deleted with it. The revision that
	// created such a key can be used as the holder's fencing token: the revision only grows, and a
	// Cond with it fails once the lease has ended.
	Lease(ctx context.Context, ttl time.Duration) (LeaseID, error)
	KeepAlive(ctx context.Context, id LeaseID) error
	Revoke(ctx context.Context, id LeaseID) error

	Close() error
}

// Local returns a view of a store for reads that may be slightly out of date. In a shared store,
// such reads can succeed even while other reads fail. If the store has no such view, Local returns
// the store itself.
func Local(s Store) Store {
	if l, ok := s.(interface{ Local() Store }); ok {
		return l.Local()
	}
	return s
}

// Reading contains the methods with which a caller reads a Store.
type Reading interface {
	Get(ctx context.Context, key string) (Entry, error)
	List(ctx context.Context, prefix string) ([]Entry, int64, error)
	Watch(ctx context.Context, prefix string, after int64) iter.Seq2[Event, error]
}

// Sibling returns the tree of another kind in the same database as the store s, for reading. A tree
// consists of the keys with a common prefix. Conditions in transactions of s can refer to keys of
// the sibling; see Cond.Tree. Do not use the sibling after s is closed. If the database of s has no
// trees, the second result is false.
func Sibling(s Store, tree string) (Reading, bool) {
	t, ok := s.(interface{ Sibling(tree string) Reading })
	if !ok {
		return nil, false
	}
	return t.Sibling(tree), true
}

// LeaseID identifies a lease. The zero LeaseID means no lease.
type LeaseID int64

// Entry is a key with its value, and with the revisions at which the key was created and last
// changed.
type Entry struct {
	Key               string
	Value             []byte
	Created, Modified int64
}

// These are the limits within which every engine accepts a transaction: the number of operations,
// and the total size of the values in bytes.
const (
	MaxOps   = 100
	MaxBytes = 256 << 10
)

// Txn is a transaction. If all conditions in If are true, Commit applies all operations in Then.
// Otherwise it applies none.
type Txn struct {
	If   []Cond
	Then []Op
}

// Cond is a condition of a transaction. It is true if the key was last changed at the revision
// Modified. If Modified is zero, the condition is true if the key is absent.
type Cond struct {
	Key      string
	Modified int64

	// Tree is the name of the sibling that contains the key. If it is empty, the key is in the
	// store of the transaction. An engine without trees returns an error for a Tree that is not
	// empty.
	Tree string
}

// Op is an operation of a transaction. If Delete is true, it deletes the key, and otherwise it sets
// the key to Value.
type Op struct {
	Key    string
	Value  []byte
	Delete bool
	Lease  LeaseID // lease whose end deletes the key; zero for none
}

// Put returns the operation that sets a key to a value.
func Put(key string, value []byte) Op { return Op{Key: key, Value: value} }

// Delete returns the operation that deletes a key.
func Delete(key string) Op { return Op{Key: key, Delete: true} }

// Event is a change of one key. If Deleted is true, the key was deleted: Modified is then the
// revision of the deletion, and Value and Created are zero.
type Event struct {
	Entry
	Deleted bool
}
