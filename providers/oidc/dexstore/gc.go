package dexstore

import (
	"context"
	"time"

	"github.com/dexidp/dex/storage"

	"github.com/florete/florete/providers/store"
)

// page is the number of records that garbage collection reads and deletes in one transaction.
const page = 20

// GarbageCollect deletes the records of sign-ins that expired before the time now.
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

// ExpireRefresh deletes refresh tokens that were last used before the time idle, and tokens that
// were created before the time ends. Dex refuses such tokens, but never deletes them.
func (s *Store) ExpireRefresh(ctx context.Context, idle, ends time.Time) error {
	_, err := expire(ctx, s, refreshTokens, func(v storage.RefreshToken) bool { return v.LastUsed.Before(idle) || v.CreatedAt.Before(ends) })
	return err
}

// expire deletes expired records. It does so without conditions, because no update changes when a
// record expires, and deleting an absent record is harmless.
func expire[T any](ctx context.Context, s *Store, t table[T], expired func(T) bool) (n int64, err error) {
	for after := ""; ; {
		entries, err := s.db.Page(ctx, t.prefix(), after, page)
		if err != nil || len(entries) == 0 {
			return n, err
		}
		var ops []store.Op
		for _, e := range entries {
			v, err := t.decode(s, e)
			if err != nil {
				return n, err
			}
			if expired(v) {
				ops = append(ops, store.Delete(e.Key))
			}
		}
		if len(ops) > 0 {
			if _, err := s.db.Commit(ctx, store.Txn{Then: ops}); err != nil {
				return n, err
			}
		}
		n += int64(len(ops))
		after = entries[len(entries)-1].Key
	}
}
