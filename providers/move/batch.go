package move

import (
	"context"
	"time"

	"github.com/florete/florete/providers/store"
)

// cursor is a position in a sorted sequence of entries.
type cursor struct {
	next func() (store.Entry, error, bool)
	skip func(key string) bool
	is   *store.Entry // nil at the end
	err  error
}

func (c *cursor) advance() {
	for {
		e, err, ok := c.next()
		if err != nil || !ok {
			c.is, c.err = nil, err
			return
		}
		if !c.skip(e.Key) {
			c.is = &e
			return
		}
	}
}

// batch collects changes of the tree, so that many of them are made in one transaction.
type batch struct {
	Move
	ctx     context.Context
	fence   store.Cond
	ops     []store.Op
	size    int
	changes int
	leases  map[time.Duration]store.LeaseID
}

// put adds a copy of an entry to the batch. If the entry has a lease, the copy lasts longer than
// the original.
func (b *batch) put(e store.Entry) error {
	op := store.Put(e.Key, e.Value)
	if within, ends := b.State.Ends(e.Key); ends {
		if b.leases[within] == 0 {
			lease, err := b.To.Lease(b.ctx, within+time.Hour) // whatever copying takes
			if err != nil {
				return err
			}
			b.leases[within] = lease
		}
		op.Lease = b.leases[within]
	}
	return b.add(op)
}

func (b *batch) add(op store.Op) error {
	if len(b.ops) == store.MaxOps || b.size+len(op.Value) > store.MaxBytes {
		if err := b.flush(); err != nil {
			return err
		}
	}
	b.ops, b.size, b.changes = append(b.ops, op), b.size+len(op.Value), b.changes+1
	return nil
}

func (b *batch) flush() error {
	if len(b.ops) == 0 {
		return nil
	}
	_, err := b.To.Commit(b.ctx, store.Txn{If: []store.Cond{b.fence}, Then: b.ops})
	b.ops, b.size = nil, 0
	return err
}
