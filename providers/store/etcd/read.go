package etcd

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/florete/florete/providers/store"
)

// page is the number of keys of a list that are read at once.
const page = 500

func (s *Store) entry(kv *mvccpb.KeyValue) store.Entry {
	return store.Entry{Key: string(kv.Key[len(s.key("")):]), Value: kv.Value, Created: kv.CreateRevision, Modified: kv.ModRevision}
}

// get makes a linearizable read.
func (s *Store) get(ctx context.Context, key string, opts ...clientv3.OpOption) (r *clientv3.GetResponse, err error) {
	err = s.request(ctx, func(ctx context.Context, _ bool) error {
		r, err = s.client.Get(ctx, key, opts...)
		return err
	})
	return r, err
}

func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	r, err := s.get(ctx, s.key(key))
	if err == nil && len(r.Kvs) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Entry{}, fmt.Errorf("key %q: %w", key, err)
	}
	return s.entry(r.Kvs[0]), nil
}

func (s *Store) List(ctx context.Context, prefix string) ([]store.Entry, int64, error) {
	for {
		entries, revision, err := s.list(ctx, prefix)
		if !errors.Is(err, rpctypes.ErrCompacted) { // while it was read: begin anew
			return entries, revision, err
		}
	}
}

// list reads the keys with a prefix, page by page. All pages are read at the revision of the first
// page.
func (s *Store) list(ctx context.Context, prefix string) (entries []store.Entry, revision int64, err error) {
	from, end := s.key(prefix), clientv3.GetPrefixRangeEnd(s.key(prefix))
	for {
		r, err := s.get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(page), clientv3.WithRev(revision))
		if err != nil {
			return nil, 0, fmt.Errorf("keys %q: %w", prefix, err)
		}
		if revision == 0 {
			revision = r.Header.Revision
		}
		entries = append(entries, s.entries(r)...)
		if !r.More {
			return entries, revision, nil
		}
		from = string(r.Kvs[len(r.Kvs)-1].Key) + "\x00"
	}
}

func (s *Store) Snapshot(ctx context.Context, prefix string, read func(int64, iter.Seq2[store.Entry, error]) error) error {
	r, err := s.get(ctx, s.key(prefix), clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return fmt.Errorf("keys %q: %w", prefix, err)
	}
	revision := r.Header.Revision
	return read(revision, func(yield func(store.Entry, error) bool) {
		from, end := s.key(prefix), clientv3.GetPrefixRangeEnd(s.key(prefix))
		for {
			r, err := s.get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(page), clientv3.WithRev(revision))
			if errors.Is(err, rpctypes.ErrCompacted) {
				err = store.ErrCompacted
			}
			if err != nil {
				yield(store.Entry{}, fmt.Errorf("keys %q at revision %d: %w", prefix, revision, err))
				return
			}
			for _, kv := range r.Kvs {
				if !yield(s.entry(kv), nil) {
					return
				}
				from = string(kv.Key) + "\x00"
			}
			if !r.More {
				return
			}
		}
	})
}

func (s *Store) Page(ctx context.Context, prefix, after string, most int) ([]store.Entry, error) {
	from, end := s.after(prefix, after)
	r, err := s.get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(int64(most)))
	if err != nil {
		return nil, fmt.Errorf("keys %q: %w", prefix, err)
	}
	return s.entries(r), nil
}

// after returns the range of keys that start with a prefix and come after a given key. If the range
// is empty, its beginning is its end.
func (s *Store) after(prefix, key string) (from, end string) {
	from, end = s.key(prefix), clientv3.GetPrefixRangeEnd(s.key(prefix))
	if key >= prefix {
		from = min(s.key(key)+"\x00", end)
	}
	return from, end
}

func (s *Store) entries(r *clientv3.GetResponse) (entries []store.Entry) {
	for _, kv := range r.Kvs {
		entries = append(entries, s.entry(kv))
	}
	return entries
}

func (s *Store) Watch(ctx context.Context, prefix string, after int64) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		for next := after + 1; ; {
			var more bool
			if next, more = s.watch(ctx, prefix, next, yield); !more {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-s.ctx.Done():
			case <-time.After(pause):
			}
		}
	}
}

// watch yields changes until the member that it watches loses the leader or fails. Another member
// then continues.
func (s *Store) watch(ctx context.Context, prefix string, next int64, yield func(store.Event, error) bool) (int64, bool) {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	if s.ctx.Err() == nil {
		stop := context.AfterFunc(s.ctx, cancel)
		defer stop()
		for r := range s.client.Watch(ctx, s.key(prefix), clientv3.WithPrefix(), clientv3.WithRev(next)) {
			if r.CompactRevision != 0 {
				yield(store.Event{}, fmt.Errorf("revision %d, kept from %d: %w", next-1, r.CompactRevision, store.ErrCompacted))
				return next, false
			}
			for _, e := range r.Events {
				event := store.Event{Entry: s.entry(e.Kv), Deleted: e.Type == mvccpb.DELETE}
				if !yield(event, nil) {
					return next, false
				}
				next = event.Modified + 1
			}
		}
	}
	if s.ctx.Err() != nil {
		yield(store.Event{}, errClosed)
		return next, false
	}
	return next, true
}
