package cert

import (
	"context"
	"sync"
	"time"

	"github.com/florete/florete/providers/store"
)

// usedLife is the longest time for which a used nonce is recorded. It covers a nonce from a clock
// that is nonceLife ahead, and the time in which further nonces share its lease.
const usedLife = 3 * nonceLife

// used is the lease of the nonces that are used now. Nonces share it for the lifetime of one,
// because a lease for each would be a second commit for each of many enrolling nodes.
type used struct {
	mu   sync.Mutex
	id   store.LeaseID
	made time.Time
}

func (u *used) lease(ctx context.Context, s store.Store, now time.Time) (store.LeaseID, error) {
	now = now.Round(0) // the wall clock, by which leases end
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.id != 0 && !now.Before(u.made) && now.Before(u.made.Add(nonceLife)) {
		return u.id, nil
	}
	id, err := s.Lease(ctx, usedLife)
	if err != nil {
		return 0, err
	}
	u.id, u.made = id, now
	return id, nil
}
