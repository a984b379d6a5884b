package commit

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/florete/florete/activation/documents"
	"github.com/florete/florete/internal/hostdir"
)

// tick is the interval at which the clock and the commit are read. A timer would stand still while
// the machine sleeps.
const tick = time.Second

// again is the delay after an attempt to restore an installation failed.
const again = 10 * time.Second

// Supervise undoes the pending commit at its deadline, and returns when no commit is pending. It
// calls armed as soon as no other process can prevent the rollback. Errors are logged and retried.
// If the commit changes the whole installation, Supervise calls arm to start a less confined
// process that can restore the installation. It starts that process again if needed, for example
// after a reboot.
func Supervise(ctx context.Context, l hostdir.Layout, arm func(context.Context) error, armed func()) error {
	s := supervisor{layout: l, armed: sync.OnceFunc(armed)}
	s.system = func(ctx context.Context, _ hostdir.Commit, _ bool) error {
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

// SuperviseSystem is like Supervise, but runs in a process that may itself restore a whole
// installation.
func SuperviseSystem(ctx context.Context, l hostdir.Layout, armed func()) error {
	s := supervisor{layout: l, armed: sync.OnceFunc(armed)}
	s.system = func(ctx context.Context, c hostdir.Commit, due bool) error {
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

	// system is called repeatedly while a commit of the whole installation is pending.
	system func(ctx context.Context, c hostdir.Commit, due bool) error
}

func (s supervisor) run(ctx context.Context) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		pending, err := s.step(ctx)
		if err != nil {
			slog.Error("the pending commit", "err", err)
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

// step reports whether a commit is still pending, and undoes it if it is time.
func (s supervisor) step(ctx context.Context) (pending bool, err error) {
	c, err := s.layout.PendingCommit()
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

// undo restores the previous documents and ends the commit.
func (s supervisor) undo() error {
	undone, err := documents.Undo(s.layout, nil)
	if undone != nil {
		slog.Warn(fmt.Sprintf("%s was not confirmed in time: what was before is in force again", undone))
	}
	return err
}
