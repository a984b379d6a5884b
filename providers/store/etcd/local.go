package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/florete/florete/providers/store"
)

// Local returns the same tree for reads that may be slightly out of date. One member alone can
// answer such reads, even if no majority of the members can be reached.
func (s *Store) Local() store.Store { return &local{Store: s} }

type local struct {
	*Store
	alone atomic.Int64 // until when no majority is looked for, Unix nanoseconds
}

func (l *local) Get(ctx context.Context, key string) (e store.Entry, err error) {
	err = l.read(ctx, func() error { e, err = l.Store.Get(ctx, key); return err }, func(ctx context.Context) error {
		r, err := l.client.Get(ctx, l.key(key), clientv3.WithSerializable())
		if err == nil && len(r.Kvs) == 0 {
			err = fmt.Errorf("key %q: %w", key, store.ErrNotFound)
		}
		if err == nil {
			e = l.entry(r.Kvs[0])
		}
		return err
	})
	return e, err
}

func (l *local) List(ctx context.Context, prefix string) (entries []store.Entry, revision int64, err error) {
	err = l.read(ctx, func() error { entries, revision, err = l.Store.List(ctx, prefix); return err }, func(ctx context.Context) error {
		r, err := l.client.Get(ctx, l.key(prefix), clientv3.WithPrefix(), clientv3.WithSerializable())
		if err == nil {
			entries, revision = l.entries(r), r.Header.Revision
		}
		return err
	})
	return entries, revision, err
}

func (l *local) Page(ctx context.Context, prefix, after string, most int) (entries []store.Entry, err error) {
	err = l.read(ctx, func() error { entries, err = l.Store.Page(ctx, prefix, after, most); return err }, func(ctx context.Context) error {
		from, end := l.after(prefix, after)
		r, err := l.client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(int64(most)), clientv3.WithSerializable())
		if err == nil {
			entries = l.entries(r)
		}
		return err
	})
	return entries, err
}

// read reads from a majority of members. If no majority answers, read uses a single member for a
// while.
func (l *local) read(ctx context.Context, majority func() error, alone func(context.Context) error) error {
	if time.Now().UnixNano() > l.alone.Load() {
		err := majority()
		if !errors.Is(err, store.ErrUnavailable) {
			return err
		}
		l.alone.Store(time.Now().Add(within).UnixNano())
	}
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		attempted, cancel := context.WithTimeout(bounded, attempt)
		err := alone(attempted)
		cancel()
		if !unanswered(err) {
			return err
		}
		select {
		case <-bounded.Done():
			return l.ended(ctx, err)
		case <-time.After(pause):
		}
	}
}
