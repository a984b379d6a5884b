package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/florete/florete/providers/store"
)

func (s *Store) Lease(ctx context.Context, ttl time.Duration) (id store.LeaseID, err error) {
	if ttl < time.Millisecond {
		return 0, fmt.Errorf("lease of %s: want at least a millisecond", ttl)
	}
	// One that was made without an answer ends unused.
	err = s.request(ctx, func(ctx context.Context, _ bool) error {
		r, err := s.client.Grant(ctx, int64((ttl+time.Second-1)/time.Second))
		if err == nil {
			id = store.LeaseID(r.ID)
		}
		return err
	})
	return id, err
}

func (s *Store) KeepAlive(ctx context.Context, id store.LeaseID) error {
	return leaseError(id, s.request(ctx, func(ctx context.Context, _ bool) error { return s.keepAlive(ctx, id) }))
}

// keepAlive extends a lease with a single request. The method of etcd's client would repeat the
// request without a pause.
func (s *Store) keepAlive(ctx context.Context, id store.LeaseID) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := etcdserverpb.NewLeaseClient(s.client.ActiveConnection()).LeaseKeepAlive(ctx)
	if err != nil {
		return err
	}
	if err := stream.Send(&etcdserverpb.LeaseKeepAliveRequest{ID: int64(id)}); err != nil {
		return err
	}
	r, err := stream.Recv()
	if err == nil && r.TTL <= 0 {
		err = rpctypes.ErrLeaseNotFound
	}
	return err
}

func (s *Store) Revoke(ctx context.Context, id store.LeaseID) error {
	return leaseError(id, s.request(ctx, func(ctx context.Context, first bool) error {
		_, err := s.client.Revoke(ctx, clientv3.LeaseID(id))
		if !first && errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return nil
		}
		return err
	}))
}

func leaseError(id store.LeaseID, err error) error {
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return fmt.Errorf("lease %d: %w", id, store.ErrNotFound)
	}
	return err
}
