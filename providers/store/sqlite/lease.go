package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/florete/florete/providers/store"
)

func (s *Store) Lease(ctx context.Context, ttl time.Duration) (id store.LeaseID, err error) {
	if ttl < time.Millisecond {
		return 0, fmt.Errorf("lease of %s: want at least a millisecond", ttl)
	}
	_, err = s.update(ctx, func(t *tx) error {
		made, err := s.writing.integers("INSERT INTO leases (ttl, expires) VALUES (?, ?) RETURNING id", ttl.Milliseconds(), time.Now().Add(ttl).UnixMilli())
		if err == nil {
			id = store.LeaseID(made[0])
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return id, nil
}

func (s *Store) KeepAlive(ctx context.Context, id store.LeaseID) error {
	_, err := s.update(ctx, func(t *tx) error {
		if err := t.lease(id); err != nil {
			return err
		}
		return t.exec("UPDATE leases SET expires = ttl + ? WHERE id = ?", time.Now().UnixMilli(), int64(id))
	})
	return err
}

func (s *Store) Revoke(ctx context.Context, id store.LeaseID) error {
	_, err := s.update(ctx, func(t *tx) error {
		if err := t.lease(id); err != nil {
			return err
		}
		return t.end("id = ?", int64(id))
	})
	return err
}

// sweeper deletes leases when they end, so that watches see the changes in time.
func (s *Store) sweeper() {
	for {
		wait := time.Hour
		var next sql.NullInt64
		if err := s.read.QueryRowContext(s.ctx, "SELECT min(expires) FROM leases").Scan(&next); err != nil {
			wait = time.Second
		} else if next.Valid {
			wait = min(max(time.Until(time.UnixMilli(next.Int64)), 0), time.Minute) // the clock may go back meanwhile
		}
		timer := time.NewTimer(wait)
		select {
		case <-s.ctx.Done():
			timer.Stop()
			return
		case <-s.wake:
			timer.Stop()
			continue
		case <-timer.C:
		}
		// Leases that fail to be swept here are swept at the next change.
		if _, err := s.update(s.ctx, func(*tx) error { return nil }); err != nil && s.ctx.Err() == nil {
			time.Sleep(time.Second)
		}
	}
}
