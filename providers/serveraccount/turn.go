package serveraccount

import (
	"context"
	"errors"
	"time"

	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// turnEnds is the time after which another process takes its turn if a process died while it worked
// at a server. It is longer than any work at a server takes.
const turnEnds = 2 * Deadline

// turn waits until no other process that uses the store works at a server, or on an account of the
// server. The returned function ends the turn. The lock is in the provider's own store, because
// anybody with a login could hold a lock at the server.
func (a *Accounts[R, B]) turn(ctx context.Context, at string) (release func(), err error) {
	lease, err := a.Store.Lease(ctx, turnEnds)
	if err != nil {
		return nil, err
	}
	release = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), Deadline/5)
		defer cancel()
		_ = a.Store.Revoke(ctx, lease) // or it ends by itself
	}
	key := turnsOf(a.kind.Name) + at
	for {
		_, err := a.Store.Commit(ctx, store.Txn{If: []store.Cond{{Key: key}}, Then: []store.Op{{Key: key, Lease: lease}}})
		if err == nil {
			return release, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			release()
			return nil, err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			release()
			return nil, ctx.Err()
		}
	}
}

func turnsOf(kind string) string { return kind + "/turn/" }

// State returns the keys in the state store that belong in a backup: the records of accounts. Their
// secrets are left out, and are created again after a restore.
func State(kind string) server.State {
	return server.State{Remembered: []string{Prefix(kind)}, Ending: map[string]time.Duration{turnsOf(kind): 0}}
}
