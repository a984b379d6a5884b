package confirm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/florete/florete/activation"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
	. "github.com/florete/florete/tests/kit/activationtest"
)

// settles reports whether no document from the network is left to decide on.
func settles(l hostdir.Layout) bool {
	d, err := l.Manifest()
	p, unread := l.PendingChange()
	u, unreadable := l.Undone()
	return err == nil && unread == nil && unreadable == nil && p == nil && (d.Envelope.Serial > 1 || u != nil && !u.Answered.IsZero())
}

// activate runs activation without a supervisor, until there is nothing left to decide.
func activate(l hostdir.Layout, hostKey string, step func(string)) error {
	ctx, cancel := context.WithTimeout(context.Background(), kit.Patience)
	defer cancel()
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() {
		_ = kit.Poll(ctx, func() error {
			if !settles(l) {
				return errors.ErrUnsupported
			}
			return nil
		})
		cancel()
	})
	_, err := activation.Run(ctx, activation.Config{
		State: l, HostKey: hostKey, Step: step, Arm: func(context.Context) error { return nil },
		Notify: func(context.Context, string) error { return nil },
	})
	if err == nil && !settles(l) {
		err = errors.New("it has not settled")
	}
	return err
}

// TestSupervisedActivation checks that documents that cut a host off are reverted by a real
// supervisor and not tried again, and that good ones that follow are confirmed.
func TestSupervisedActivation(t *testing.T) {
	h := newHost(t)
	h.forge.SetWatch(true)
	right := h.manifest
	h.manifest.Providers = map[string]map[string]document.Provider{"forge": Provides("forge", kit.Address())}
	h.publish(2)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	all.Go(func() {
		if _, err := activation.Run(ctx, activation.Config{
			State: h.State, HostKey: h.Host.HostKey, ConfirmTimeout: 2 * time.Second,
			Notify: func(context.Context, string) error { return nil },
			Arm: func(context.Context) error {
				armed := make(chan struct{})
				all.Go(func() {
					if err := Supervise(ctx, h.State, nil, func() { close(armed) }); err != nil {
						t.Error(err)
					}
				})
				<-armed
				return nil
			},
		}); err != nil {
			t.Error(err)
		}
	})
	until := func(what string, holds func() bool) {
		t.Helper()
		kit.Succeeds(t, what, func() error {
			if !holds() {
				return fmt.Errorf("pending %v, undone %+v", h.pending(), h.undone())
			}
			return nil
		})
	}
	until("it is in force", func() bool { return h.serial() == 2 })
	until("it went back", func() bool { u := h.undone(); return h.serial() == 1 && u != nil && !u.Answered.IsZero() })
	h.forge.Offer(kit.Signed(3, right, h.Signing)) // the same as the first: no change
	right.Roles = []string{"another"}
	h.forge.Offer(kit.Signed(4, right, h.Signing))
	until("what is right is confirmed", func() bool { return h.serial() == 4 && h.pending() == nil })
}
