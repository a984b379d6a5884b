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

// codeNotify is the code of a unit that could not be notified.
var codeNotify = hostapi.Code{Name: "notify", Class: hostapi.Transient}

// notifyTimeout bounds the notification of one unit.
const notifyTimeout = 2 * time.Minute

// notify begins to notify the units of a need if that is due. It returns the time at which to call
// it again, zero for none.
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

// notifyUnits notifies the units of a need of the current generation and then records it: if the
// process dies in between, they are notified again. If one unit fails, the others are not notified
// again.
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
