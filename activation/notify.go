package activation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/activation/needstate"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
)

// codeNotify is the code of the error recorded when a unit could not be restarted after its files
// changed.
var codeNotify = hostapi.Code{Name: "notify", Class: hostapi.Transient}

// notifyTimeout limits the time for restarting one unit.
const notifyTimeout = 2 * time.Minute

// notify starts the restarts of a need's units if its files have changed since the last restart. It
// returns the time at which it must be called again, or the zero time if no restart is pending.
func (a *activation) notify(n *need, now time.Time, start needstate.Start) (next time.Time) {
	generation := n.Look(now) // in force
	switch {
	case len(n.OnChange) == 0 || generation <= n.State.NotifiedGeneration || n.notifying || a.Once && n.notifyFailures > 0:
	case n.nextNotify.After(now):
		return n.nextNotify
	default:
		n.notifying = true
		start(func(ctx context.Context) func() { return a.notifyUnits(ctx, n, generation) })
	}
	return next
}

// notifyUnits restarts the units of a need, and then records that the units use the given
// generation of the files. If the process dies before the record is written, the units are
// restarted again. If the restart of one unit fails, only that unit is restarted at the next
// attempt.
func (a *activation) notifyUnits(ctx context.Context, n *need, generation int) func() {
	var done []string
	var failed error
	notified := map[string]int{}
	for _, unit := range n.OnChange {
		if notified[unit] = n.notified[unit]; notified[unit] == generation {
			continue
		}
		err := a.notifyUnit(ctx, unit)
		switch {
		case errors.Is(err, ErrNoNotifier):
			done = append(done, fmt.Sprintf("not restarted: %s: %v", unit, err))
		case err != nil:
			failed = errors.Join(failed, err)
			continue
		default:
			done = append(done, fmt.Sprintf("restarted %s", unit))
		}
		notified[unit] = generation
	}
	return func() {
		n.notifying, n.notified = false, notified
		for _, text := range done {
			a.report(event.Event{Event: event.Notified, Need: n.ID, Message: text})
		}
		switch {
		case failed == nil:
			a.recordNotified(n, generation)
		case ctx.Err() == nil:
			a.recordNotifyFailed(n, failed)
		}
	}
}

func (a *activation) notifyUnit(ctx context.Context, unit string) error {
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	return a.Notify(ctx, unit)
}

func (a *activation) recordNotified(n *need, generation int) {
	n.notifyFailures, n.State.NotifiedGeneration = 0, generation
	if n.State.Error != nil && n.State.Error.Code == codeNotify.Name {
		n.State.Error = nil
	}
	n.Save()
}

func (a *activation) recordNotifyFailed(n *need, failed error) {
	n.notifyFailures++
	e := hostapi.Errorf(codeNotify, "%v", failed)
	n.nextNotify = time.Now().Round(0).Add(a.Backoff.Wait(n.notifyFailures, e))
	if n.State.State == hostdir.NeedFulfilled {
		n.State.Error = needstate.NewError(e)
	}
	n.Save()
	a.report(event.Event{Event: event.NotifyFailed, Need: n.ID, Attempt: n.notifyFailures, Kind: e.Kind, Code: e.Code, Message: e.Message, Next: n.nextNotify})
}
