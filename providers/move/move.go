// Package move moves the state of a provider process from its own file into a tree of the state
// store that provider hosts share. The process continues to serve from the file during the move.
//
//	state/moving   in the tree, with its keyring: names the host whose file is being copied; nothing is served from it
//	state/moved    in the file: names the place of its state; in the tree: names the host that the state came from
//
// The keyring of the tree begins with the sealing key of the file, so that sealed values can still
// be opened and derived secrets stay the same. Move compares the file with the tree, page by page,
// and copies the differences, until few are left or their number no longer halves. Then it freezes
// the file, compares once more, and marks the tree as complete. If a move is interrupted, run it
// again.
package move

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
)

const (
	own    = "state/"
	moving = own + "moving"
	moved  = own + "moved"
)

// Mark records that the state of a host was moved from a file to a tree, which is the host's part
// of a store that several hosts share. The file and the tree each contain a Mark.
type Mark struct {
	Host string        `json:"host"`         // host whose file was moved
	To   []string      `json:"to,omitempty"` // in the file: endpoints of the shared store
	Time unixtime.Time `json:"time"`
}

// Of returns the Mark of a completed move, or the zero Mark if no move was completed. The store is
// either the file from which the state was moved, or the tree to which it was moved.
func Of(ctx context.Context, s store.Store) (Mark, error) { return read(ctx, s, moved) }

// Under returns the Mark of a move to a tree that was begun but is not complete, or the zero Mark
// if there is none.
func Under(ctx context.Context, s store.Store) (Mark, error) { return read(ctx, s, moving) }

func read(ctx context.Context, s store.Store, key string) (m Mark, err error) {
	_, err = store.Load(ctx, s, key, &m)
	return m, err
}

func (m Mark) op(key string) store.Op {
	value := strictjson.Encode(m)
	return store.Put(key, value)
}

// Nothing marks a tree as if a move to it were complete, without copying anything. Call it if the
// host had no state to move. If the tree is marked already, Nothing leaves it unchanged.
func Nothing(ctx context.Context, to store.Store, host string) error {
	_, err := to.Commit(ctx, store.Txn{If: []store.Cond{{Key: moved}}, Then: []store.Op{Mark{Host: host, Time: now()}.op(moved)}})
	if errors.Is(err, store.ErrConflict) {
		return nil
	}
	return err
}

func now() unixtime.Time { return unixtime.Of(time.Now().UTC().Truncate(time.Second)) }

// Move moves the state of one kind of need from a file on this host to a store that several hosts
// share. Its fields are the settings for this.
type Move struct {
	File      *sqlite.Store
	To        store.Store
	Endpoints []string // endpoints of To
	Host      string   // name of this host
	Kind      string
	State     server.State
	Secret    []byte                   // sealing key of the file
	Named     sealedstore.RingReplicas // replicas that the tree's keyring admits

	// Opened is called with the keys of the tree's keyring, after Move has made the keyring.
	Opened func(sealedstore.RingKeys) error
	// Copied is called after each comparison of the file with the tree. The argument changes is the
	// number of keys that differed. Copied may be nil.
	Copied func(changes int)
}

// ErrInUse is the error of a move to a tree that already contains the state of another process.
var ErrInUse = errors.New("the store has another state of this kind already")

// ErrLost is the error for a file whose state has moved, if the state is missing at its
// destination.
var ErrLost = errors.New("the store does not have the state that moved there")

// Run moves the state from the file to the shared store. If an earlier move was interrupted, Run
// completes it. When Run returns nil, the state is complete in the shared store, and the file
// accepts no more changes. If the state of another host was moved there before, the error wraps
// ErrInUse.
func (m Move) Run(ctx context.Context) error {
	left, err := Of(ctx, m.File)
	if err != nil {
		return err
	}
	there, err := Of(ctx, m.To)
	switch {
	case err != nil:
		return err
	case there.Host == m.Host && left.Host != "":
		return nil
	case there.Host != "":
		return fmt.Errorf("%w: that of %s, since %s", ErrInUse, there.Host, there.Time.Format(time.RFC3339))
	}
	fence, err := m.begin(ctx, left.Host != "")
	if err != nil {
		return err
	}
	if left.Host == "" {
		for n, before := 0, 0; ; before = n {
			if n, err = m.compare(ctx, fence); err != nil {
				return err
			}
			if n <= store.MaxOps || before > 0 && n > before/2 {
				break // few are left, or the file changes as fast as it is copied
			}
		}
		if err := m.File.Freeze(ctx, Mark{Host: m.Host, To: m.Endpoints, Time: now()}.op(moved)); err != nil {
			return err
		}
	}
	if _, err := m.compare(ctx, fence); err != nil {
		return err
	}
	row := server.Row{Time: time.Now().UTC(), Kind: m.Kind, Outcome: server.Changed, Code: "moved",
		Message: fmt.Sprintf("the state of %s is in the store that provider hosts share", m.Host)}
	_, err = m.To.Commit(ctx, store.Txn{If: []store.Cond{fence}, Then: []store.Op{
		store.Delete(moving), Mark{Host: m.Host, Time: now()}.op(moved), row.Op(),
	}})
	return err
}

// begin makes the keyring of the tree, and the mark on which every change depends. From then on,
// earlier processes cannot change the tree.
func (m Move) begin(ctx context.Context, frozen bool) (fence store.Cond, err error) {
	mark := Mark{Host: m.Host, Time: now()}.op(moving)
	e, err := m.To.Get(ctx, moving)
	if err == nil {
		var by Mark
		if err := json.Unmarshal(e.Value, &by); err != nil {
			return fence, fmt.Errorf("%s: %w", moving, err)
		}
		if by.Host != m.Host {
			return fence, fmt.Errorf("%w: that of %s is moving there", ErrInUse, by.Host)
		}
		revision, err := m.To.Commit(ctx, store.Txn{If: []store.Cond{{Key: moving, Modified: e.Modified}}, Then: []store.Op{mark}})
		return store.Cond{Key: moving, Modified: revision}, err
	}
	if !errors.Is(err, store.ErrNotFound) {
		return fence, err
	}
	if frozen {
		return fence, ErrLost
	}
	keys, err := sealedstore.MakeRing(ctx, m.To, m.Named, m.Secret, mark)
	if errors.Is(err, store.ErrConflict) {
		return fence, ErrInUse
	}
	if err == nil {
		err = m.Opened(keys)
	}
	if err == nil {
		e, err = m.To.Get(ctx, moving)
	}
	return store.Cond{Key: moving, Modified: e.Modified}, err
}

// compare makes the tree equal the file, and returns the number of keys that differed.
func (m Move) compare(ctx context.Context, fence store.Cond) (changes int, err error) {
	b := batch{Move: m, ctx: ctx, fence: fence, leases: map[time.Duration]store.LeaseID{}}
	err = m.File.Snapshot(ctx, "", func(_ int64, file iter.Seq2[store.Entry, error]) error {
		return m.To.Snapshot(ctx, "", func(_ int64, tree iter.Seq2[store.Entry, error]) error {
			nextFile, stopFile := iter.Pull2(file)
			defer stopFile()
			nextTree, stopTree := iter.Pull2(tree)
			defer stopTree()
			f, t := cursor{next: nextFile, skip: m.stays}, cursor{next: nextTree, skip: ofTree}
			f.advance()
			t.advance()
			for {
				var err error
				switch {
				case f.err != nil || t.err != nil:
					return errors.Join(f.err, t.err)
				case f.is == nil && t.is == nil:
					return b.flush()
				case f.is == nil || t.is != nil && t.is.Key < f.is.Key:
					err = b.add(store.Delete(t.is.Key))
					t.advance()
				case t.is == nil || f.is.Key < t.is.Key:
					err = b.put(*f.is)
					f.advance()
				default:
					if !bytes.Equal(f.is.Value, t.is.Value) {
						err = b.put(*f.is)
					}
					f.advance()
					t.advance()
				}
				if err != nil {
					return err
				}
			}
		})
	})
	if err == nil && m.Copied != nil {
		m.Copied(b.changes)
	}
	return b.changes, err
}

// stays reports whether a key belongs to the file alone, so that it is not copied.
func (m Move) stays(key string) bool {
	within, ends := m.State.Ends(key)
	return strings.HasPrefix(key, own) || ends && within == 0
}

// ofTree reports whether a key belongs to the tree itself.
func ofTree(key string) bool { return strings.HasPrefix(key, own) || key == sealedstore.RingAt }
