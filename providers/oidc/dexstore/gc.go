package dexstore

import (
	"context"
	"slices"
	"time"

	"florete/providers/store"

	"github.com/dexidp/dex/storage"
)

// batch is how many records one transaction of the garbage collection deletes.
const batch = 100

// GarbageCollect deletes what expired before now.
func (s *Store) GarbageCollect(ctx context.Context, now time.Time) (r storage.GCResult, err error) {
	if r.AuthRequests, err = expire(ctx, s, authRequests, func(v storage.AuthRequest) bool { return now.After(v.Expiry) }); err != nil {
		return r, err
	}
	if r.AuthCodes, err = expire(ctx, s, authCodes, func(v storage.AuthCode) bool { return now.After(v.Expiry) }); err != nil {
		return r, err
	}
	if r.DeviceRequests, err = expire(ctx, s, deviceRequests, func(v storage.DeviceRequest) bool { return now.After(v.Expiry) }); err != nil {
		return r, err
	}
	r.DeviceTokens, err = expire(ctx, s, deviceTokens, func(v storage.DeviceToken) bool { return now.After(v.Expiry) })
	return r, err
}

// expire deletes without conditions: no update moves an expiry, and a record
// that is gone already needs nothing.
func expire[T any](ctx context.Context, s *Store, t table[T], expired func(T) bool) (n int64, err error) {
	entries, _, err := s.db.List(ctx, t.prefix())
	if err != nil {
		return 0, err
	}
	var ops []store.Op
	for _, e := range entries {
		v, err := t.decode(s, e)
		if err != nil {
			return 0, err
		}
		if expired(v) {
			ops = append(ops, store.Delete(e.Key))
		}
	}
	for some := range slices.Chunk(ops, batch) {
		if _, err := s.db.Commit(ctx, store.Txn{Then: some}); err != nil {
			return n, err
		}
		n += int64(len(some))
	}
	return n, nil
}
