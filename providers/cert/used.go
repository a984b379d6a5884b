package cert

import (
	"context"
	"sync"
	"time"

	"github.com/florete/florete/providers/store"
)

// usedLife is how long a used nonce is remembered at most: as long as one made by a clock that
// is nonceLife ahead can be used, and the time in which others come under the same lease.
const usedLife = 3 * nonceLife

// used is the lease of the nonces that are used now. They share one for as long as one of them
// lives: where many nodes enrol at once, a lease for each would be a second commit for each.
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
