package oidc

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/dexidp/dex/storage"
)

// maxPending is how many sign-ins can be under way. Anybody who reaches the pages can
// begin one, and each is a record for as long as it may be finished.
const maxPending = 10_000

var errPending = errors.New("oidc: too many sign-ins under way")

// pending is a storage in which only so many sign-ins are under way. It counts those of
// this process.
type pending struct {
	storage.Storage
	n *atomic.Int64
}

func (p pending) CreateAuthRequest(ctx context.Context, a storage.AuthRequest) error {
	if p.n.Add(1) > maxPending {
		p.n.Add(-1)
		return errPending
	}
	err := p.Storage.CreateAuthRequest(ctx, a)
	if err != nil {
		p.n.Add(-1)
	}
	return err
}

func (p pending) DeleteAuthRequest(ctx context.Context, id string) error {
	err := p.Storage.DeleteAuthRequest(ctx, id)
	if err == nil {
		p.n.Add(-1)
	}
	return err
}

func (p pending) GarbageCollect(ctx context.Context, now time.Time) (storage.GCResult, error) {
	r, err := p.Storage.GarbageCollect(ctx, now)
	p.n.Add(-r.AuthRequests)
	return r, err
}
