// Package etcd implements a store.Store that several provider hosts share, on an etcd cluster. Each
// kind of need has a tree of its own in the cluster.
//
// The keys of a tree start with the tree's name. Below it, d/ contains the values, and s/ the slots
// of clients. A slot shows whether a transaction was made if etcd did not answer: a transaction
// also writes its ID to a slot of the client, on condition that the slot is unchanged. By writing
// to the slot itself, a client prevents a transaction that may still be under way.
//
// A Store owns one goroutine, which keeps the lease of its slots. Close waits for it.
package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/florete/florete/providers/store"
)

// Config tells a Store which etcd cluster to use, and which tree in it. A tree consists of the keys
// with a common prefix.
type Config struct {
	Endpoints []string    // addresses of members, such as "https://[2001:db8::1]:7442"
	TLS       *tls.Config // nil only for tests
	Tree      string      // name of the tree, such as "demo.flor/cert"
}

const (
	// attempt bounds one request to one member, so that a member that hangs does not delay the
	// answer of another. within bounds all attempts of an operation. It covers the election of a
	// new leader.
	attempt = 1500 * time.Millisecond
	within  = 5 * time.Second

	// pause is the pause between two attempts.
	pause = 50 * time.Millisecond

	// limit is the size of a request that etcd accepts, 1.5 MiB, less the overhead.
	limit = 1400 << 10
)

// Store is a store.Store in an etcd cluster. It uses only the keys of one tree, which have a common
// prefix.
type Store struct {
	client *clientv3.Client
	tree   string

	ctx   context.Context // ends with Close
	close context.CancelFunc

	mu      sync.Mutex
	session store.LeaseID // of the slots; zero for none
	stop    context.CancelFunc
	free    []slot
	keeper  sync.WaitGroup // keeps the session
}

var _ store.Store = (*Store)(nil)

// Open returns a Store for a tree in an etcd cluster. It does not connect yet. Each request to the
// Store waits until a member of the cluster can be reached. Close the Store after use.
func Open(c Config) (*Store, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: c.Endpoints, TLS: c.TLS, Logger: zap.NewNop(),
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 3 * time.Second, // etcd hangs up on who pings beside no request
		MaxUnaryRetries: 1, // attempts; operations repeat themselves, at another member
	})
	if err != nil {
		return nil, fmt.Errorf("store: etcd at %q: %w", c.Endpoints, err)
	}
	s := &Store{client: client, tree: c.Tree + "/"}
	s.ctx, s.close = context.WithCancel(context.Background())
	return s, nil
}

// Close closes the Store. Its watches end with an error. Close tries to end the leases of this
// process in etcd. If etcd does not answer, they expire later.
func (s *Store) Close() error {
	s.close()
	s.mu.Lock()
	session := s.session
	s.session, s.free = 0, nil
	s.mu.Unlock()
	s.keeper.Wait()
	if session != 0 {
		// If etcd does not answer, the lease ends by itself.
		_ = s.once(context.Background(), func(ctx context.Context) error {
			_, err := s.client.Revoke(ctx, clientv3.LeaseID(session))
			return err
		})
	}
	err := s.client.Close()
	if errors.Is(err, context.Canceled) { // closed before
		err = nil
	}
	return err
}

// Sibling returns another tree in the same etcd cluster, for reading. Do not use it after the Store
// is closed.
func (s *Store) Sibling(tree string) store.Reading { return s.sibling(tree) }

func (s *Store) sibling(tree string) *Store {
	under := s.tree[:strings.LastIndex(strings.TrimSuffix(s.tree, "/"), "/")+1]
	return &Store{client: s.client, tree: under + tree + "/", ctx: s.ctx}
}

// key returns the key in etcd under which a key of the store is kept.
func (s *Store) key(key string) string { return s.tree + "d/" + key }

// request tries a request until etcd answers it. It calls the function f for each attempt, so f
// must be safe to repeat. The argument first of f is false if an earlier attempt may have taken
// effect.
func (s *Store) request(ctx context.Context, f func(ctx context.Context, first bool) error) error {
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	stop := context.AfterFunc(s.ctx, cancel)
	defer stop()
	for first := true; ; first = false {
		err := s.once(bounded, func(ctx context.Context) error { return f(ctx, first) })
		var f final
		if !unanswered(err) || errors.As(err, &f) {
			return refused(err)
		}
		select {
		case <-bounded.Done():
			return s.ended(ctx, err)
		case <-time.After(pause):
		}
	}
}

// once tries a request once.
func (s *Store) once(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), attempt)
	defer cancel()
	return f(ctx)
}

// ended returns the error of a request that was not answered.
func (s *Store) ended(ctx context.Context, last error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case s.ctx.Err() != nil:
		return errClosed
	}
	return fmt.Errorf("%w: etcd has no majority that is reached from here, for %s: %v", store.ErrUnavailable, within, last)
}

var errClosed = errors.New("the store was closed")
