package cert

import (
	"context"
	"sync"
	"time"

	"github.com/florete/florete/providers/store"
)

// usedLife is the longest time for which a used nonce is recorded. It allows for a clock that is
// ahead by nonceLife, and for the time in which further nonces share the lease.
const usedLife = 3 * nonceLife

// used is the store lease with which used nonces are recorded at present. All nonces used within
// nonceLife share the lease. A lease for each nonce would double the number of commits when many
// nodes enrol.
type used struct {
	mu   sync.Mutex
	id   store.LeaseID
	made time.Time
}

func (u *used) lease(ctx context.Context, s store.Store, now time.Time) (store.LeaseID, error) {
	now = now.Round(0) // wall clock time, by which leases end
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
