package archive

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/florete/florete/providers/store"
)

// Held is the key in the state store that an import holds, with a lease, while it is in progress.
const Held = everything + "import"

// ttl is the time for which the lock stays held after the importing process has died.
const ttl = 30 * time.Second

// lock is the exclusive right to change an archive. Every transaction of its holder requires that
// the lock is still held.
type lock struct {
	Archive
	lease store.LeaseID
	at    int64  // revision at which the key was made
	end   func() // ends the extension of the lease

	sent    chan error   // result of the commit in progress; nil if there is none
	ops     []store.Op   // to be committed together
	conds   []store.Cond // conditions of that commit, besides the lock
	size    int
	written map[string]bool // bodies of this import and of the version before
	gzip    *gzip.Writer
}

// lock acquires the lock. It waits until no other import is in progress.
func (a Archive) lock(ctx context.Context) (*lock, error) {
	for began := time.Now(); ; {
		l := &lock{Archive: a, end: func() {}, written: map[string]bool{}, gzip: gzip.NewWriter(nil)}
		var err error
		if l.lease, err = a.Lease(ctx, ttl); err != nil {
			return nil, err
		}
		l.at, err = a.Commit(ctx, store.Txn{If: []store.Cond{{Key: Held}}, Then: []store.Op{{Key: Held, Lease: l.lease}}})
		if err == nil {
			l.keep(ctx)
			return l, nil
		}
		if !errors.Is(err, store.ErrConflict) { // the lock may be held in spite of the error
			return nil, errors.Join(err, l.release(context.WithoutCancel(ctx)))
		}
		if err := l.release(ctx); err != nil {
			return nil, err
		}
		if time.Since(began) > 2*ttl {
			return nil, fmt.Errorf("another import has been at work for %s: wait until it has ended", 2*ttl)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// keep extends the lease of the lock until the lock is released. This is necessary because the time
// between two commits may be longer than the lease on a busy machine.
func (l *lock) keep(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var keeping sync.WaitGroup
	keeping.Go(func() {
		for {
			select {
			case <-time.After(ttl / 3):
				_ = l.KeepAlive(ctx, l.lease) // where that fails the next commit does, or the next time it does not
			case <-ctx.Done():
				return
			}
		}
	})
	l.end = func() { cancel(); keeping.Wait() }
}

func (l *lock) release(ctx context.Context) error {
	l.end()
	_ = l.settle() // of an import that failed
	return l.Revoke(ctx, l.lease)
}

// put sets a key in the next commit. Once the pending changes are large, put begins to commit them
// while the caller verifies and compresses further values.
func (l *lock) put(ctx context.Context, key string, value []byte) error {
	if l.size+len(value) > store.MaxBytes || len(l.ops) == store.MaxOps {
		if err := l.send(ctx); err != nil {
			return err
		}
	}
	l.size += len(value)
	l.add(store.Put(key, value))
	return nil
}

func (l *lock) add(op store.Op) { l.ops = append(l.ops, op) }

// flush commits the pending changes and waits for the result.
func (l *lock) flush(ctx context.Context) error {
	if err := l.send(ctx); err != nil {
		return err
	}
	return l.settle()
}

// send begins to commit the pending changes, once the commit before has ended.
func (l *lock) send(ctx context.Context) error {
	if err := l.settle(); err != nil || len(l.ops) == 0 {
		return err
	}
	ops, conds := l.ops, append(l.conds, store.Cond{Key: Held, Modified: l.at})
	l.ops, l.size, l.conds = nil, 0, nil
	sent := make(chan error, 1)
	l.sent = sent
	go func() { sent <- l.commit(ctx, store.Txn{If: conds, Then: ops}) }()
	return nil
}

// settle waits for the commit in progress and returns its error.
func (l *lock) settle() error {
	if l.sent == nil {
		return nil
	}
	err := <-l.sent
	l.sent = nil
	return err
}

func (l *lock) commit(ctx context.Context, txn store.Txn) error {
	_, err := l.Commit(ctx, txn)
	if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) {
		err = fmt.Errorf("this import paused for longer than %s, and another may have begun, or a rollout ended meanwhile: import again: %w", ttl, err)
	}
	return err
}

// sweep removes all versions except the newest keep ones, and all data to which no version refers.
func (l *lock) sweep(ctx context.Context, keep int) error {
	all, err := l.Versions(ctx)
	if err != nil {
		return err
	}
	roll, err := l.Rollout(ctx)
	if err != nil {
		return err
	}
	_ = l.settle()
	l.ops, l.size, l.conds = nil, 0, nil // of an import that failed
	stays := roll.needs()
	for i, v := range all {
		if i < keep || roll.AtWork() && (v.Serial == roll.Former || v.Serial == roll.Serial) {
			stays = append(stays, v)
		} else if err := l.remove(ctx, versionKey(v.Serial)); err != nil {
			return err
		}
	}
	if err := l.flush(ctx); err != nil {
		return err
	}
	used := map[string]bool{}
	for _, v := range stays {
		for n := range v.Buckets {
			used[indexKey(v.Tree, n)] = true
		}
		if err := l.bodiesOf(ctx, v, used); err != nil {
			return err
		}
	}
	whole := func(key string) string { return key }
	body := func(key string) string { return key[:len(key)-len("0000")] }
	return errors.Join(l.collect(ctx, indices, used, whole), l.collect(ctx, bodies, used, body))
}

// bodiesOf adds the digests of a version's bodies to the set given by note.
func (l *lock) bodiesOf(ctx context.Context, v Version, note map[string]bool) error {
	whole, err := l.whole(ctx, v)
	if err != nil {
		return err
	}
	for _, entries := range whole {
		for _, e := range entries {
			prefix, err := bodyKey(e.Digest)
			if err != nil {
				return err
			}
			note[prefix] = true
		}
	}
	return nil
}

// page is the number of values that are in memory at once. Each value is at most one chunk.
const page = 32

// collect removes unused keys below a prefix. The function name returns the name of a key, and a
// key is used if its name is in the set used. Keys are removed in order, so that the first chunk of
// a body is removed before the others.
func (l *lock) collect(ctx context.Context, prefix string, used map[string]bool, name func(key string) string) error {
	for e, err := range store.All(ctx, l, prefix, "", page) {
		if err != nil {
			return err
		}
		if used[name(e.Key)] {
			continue
		}
		if err := l.remove(ctx, e.Key); err != nil {
			return err
		}
	}
	return l.flush(ctx)
}

func (l *lock) remove(ctx context.Context, key string) error {
	if len(l.ops) == store.MaxOps {
		if err := l.flush(ctx); err != nil {
			return err
		}
	}
	l.add(store.Delete(key))
	return nil
}
