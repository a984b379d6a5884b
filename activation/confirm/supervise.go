package confirm

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/florete/florete/activation/documents"
	"github.com/florete/florete/internal/hostdir"
)

// tick is the interval at which the supervisor reads the clock and the change. A timer for the
// deadline would not advance while the machine sleeps.
const tick = time.Second

// again is the wait before another attempt after the restoration of an installation failed.
const again = 10 * time.Second

// Supervise waits until the pending change is confirmed. If that does not happen before the
// deadline, Supervise rolls the change back. It returns when no change is pending. Errors are
// logged, and the rollback is tried again.
//
// Supervise calls armed as soon as nothing can prevent the rollback any more. A change of
// the whole installation is rolled back by SuperviseSystem, in a process with more privileges.
// Supervise starts that process by calling arm, and starts it again if it has ended, for example
// after a reboot.
func Supervise(ctx context.Context, l hostdir.Layout, arm func(context.Context) error, armed func()) error {
	s := supervisor{layout: l, armed: sync.OnceFunc(armed)}
	s.system = func(ctx context.Context, _ hostdir.Change, _ bool) error {
		ctx, cancel := context.WithTimeout(ctx, documents.ArmTimeout)
		defer cancel()
		err := arm(ctx)
		if err == nil {
			s.armed()
		}
		return err
	}
	return s.run(ctx)
}

// SuperviseSystem is like Supervise, but can also restore a NixOS system or a bundle that a change
// has replaced. Its process must have the privileges for that.
func SuperviseSystem(ctx context.Context, l hostdir.Layout, armed func()) error {
	s := supervisor{layout: l, armed: sync.OnceFunc(armed)}
	s.system = func(ctx context.Context, c hostdir.Change, due bool) error {
		if !due {
			return nil
		}
		slog.Warn(fmt.Sprintf("%s was not confirmed in time: going back to %s", &c, c.System.Before))
		if err := goBack(ctx, *c.System); err != nil {
			select {
			case <-time.After(again):
			case <-ctx.Done():
			}
			return err
		}
		return s.undo()
	}
	return s.run(ctx)
}

type supervisor struct {
	layout hostdir.Layout
	armed  func()

	// system is called repeatedly while a change of the whole installation is pending.
	system func(ctx context.Context, c hostdir.Change, due bool) error
}

func (s supervisor) run(ctx context.Context) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		pending, err := s.step(ctx)
		if err != nil {
			slog.Error("the pending change", "err", err)
		} else if !pending {
			s.armed()
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// step undoes the pending change if its deadline has passed. It reports whether a change is still
// pending.
func (s supervisor) step(ctx context.Context) (pending bool, err error) {
	c, err := s.layout.PendingChange()
	if c == nil || err != nil {
		return false, err
	}
	now, err := documents.ReadClock()
	if err != nil {
		return true, err
	}
	due := now.Left(*c) <= 0
	if !due {
		s.armed() // the process that waits for this holds the lock on documents
		if c.Boot != now.Boot {
			if err := documents.Rearm(s.layout, now.Rearm(*c)); err != nil {
				return true, err
			}
		}
	}
	switch {
	case c.System != nil:
		return true, s.system(ctx, *c, due)
	case due:
		return false, s.undo()
	}
	return true, nil
}

// undo restores the documents that were in force before the change, and ends the change.
func (s supervisor) undo() error {
	undone, err := documents.Undo(s.layout, nil)
	if undone != nil {
		slog.Warn(fmt.Sprintf("%s was not confirmed in time: what was before is in force again", undone))
	}
	return err
}
