package commit

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/activation/documents"
)

// tick is how often the clock and the commit are read: a timer would stand still while the
// machine sleeps.
const tick = time.Second

// Supervise goes back from the pending commit at its deadline, and returns when none is
// pending. armed is called when nothing that happens to other processes can keep it from
// that. What fails is logged, and tried again.
func Supervise(ctx context.Context, l florete.Layout, armed func()) error {
	armed = sync.OnceFunc(armed)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		pending, err := supervise(l, armed)
		if err != nil {
			slog.Error("the pending commit", "err", err)
		} else if !pending {
			armed()
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// supervise reports whether a commit is still pending, and goes back if it is time.
func supervise(l florete.Layout, armed func()) (pending bool, err error) {
	c, err := l.PendingCommit()
	if c == nil || err != nil {
		return false, err
	}
	now, err := readClock()
	if err != nil {
		return true, err
	}
	if now.left(*c) > 0 {
		armed() // whoever waits for that has the documents locked
		if c.Boot != now.boot {
			err = documents.Rearm(l, now.rearm(*c))
		}
		return true, err
	}
	undone, err := documents.Undo(l, nil)
	if undone != nil {
		slog.Warn(fmt.Sprintf("%s was not confirmed in time: the documents before are in force again", undone))
	}
	return false, err
}
