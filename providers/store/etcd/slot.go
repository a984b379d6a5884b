package etcd

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/florete/florete/providers/store"
)

// lives is the time for which the slots of a client exist after the client has died.
const lives = time.Minute

// slot is a key to which transactions write their IDs, one after the other.
type slot struct {
	key     string
	at      int64 // revision that wrote it last; zero for none
	session store.LeaseID
}

// slot returns a slot that no other transaction uses.
func (s *Store) slot(ctx context.Context) (slot, error) {
	for {
		s.mu.Lock()
		session, n := s.session, len(s.free)
		if n > 0 {
			used := s.free[n-1]
			s.free = s.free[:n-1]
			s.mu.Unlock()
			return used, nil
		}
		s.mu.Unlock()
		if session != 0 {
			return slot{key: s.tree + "s/" + rand.Text(), session: session}, nil
		}
		if err := s.begin(ctx); err != nil {
			return slot{}, err
		}
	}
}

// begin makes the lease of the slots and keeps it alive. If several goroutines make leases at once,
// the unused leases end by themselves.
func (s *Store) begin(ctx context.Context) error {
	id, err := s.Lease(ctx, lives)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return errClosed
	}
	if s.session != 0 {
		return nil
	}
	kept, stop := context.WithCancel(s.ctx)
	s.session, s.stop = id, stop
	s.keeper.Go(func() {
		for kept.Err() == nil {
			select {
			case <-kept.Done():
			case <-time.After(lives / 6):
				// One that has ended is noticed by the transaction that finds no lease.
				_ = s.KeepAlive(kept, id)
			}
		}
	})
	return nil
}

// put makes a slot available to other transactions. The content of the slot must be known.
func (s *Store) put(used slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if used.session == s.session && s.session != 0 {
		s.free = append(s.free, used)
	}
}

// drop forgets the slots of a session that etcd no longer has.
func (s *Store) drop(session store.LeaseID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == session {
		s.stop()
		s.session, s.free = 0, nil
	}
}

// resolve determines whether a transaction that etcd did not answer was made. If it was not made,
// resolve prevents it from being made later.
func (s *Store) resolve(ctx context.Context, used *slot, id string) (made bool, revision int64, err error) {
	never := rand.Text()
	err = s.request(ctx, func(ctx context.Context, _ bool) error {
		r, err := s.client.Txn(ctx).
			If(clientv3.Compare(clientv3.ModRevision(used.key), "=", used.at)).
			Then(clientv3.OpPut(used.key, never, clientv3.WithLease(clientv3.LeaseID(used.session)))).
			Else(clientv3.OpGet(used.key)).
			Commit()
		if err != nil {
			return err
		}
		if r.Succeeded {
			used.at = r.Header.Revision
			return nil
		}
		kvs := r.Responses[0].GetResponseRange().Kvs
		switch {
		case len(kvs) == 1 && string(kvs[0].Value) == id:
			made = true
		case len(kvs) == 1 && string(kvs[0].Value) == never: // by an attempt without an answer
		default:
			return fmt.Errorf("slot %s: gone, so that it is not known whether a transaction was made: %w", used.key, store.ErrUnavailable)
		}
		used.at = kvs[0].ModRevision
		return nil
	})
	return made, used.at, err
}
