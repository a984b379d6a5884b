package activation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/activation/needstate"
	"github.com/florete/florete/activation/notify"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
)

// codeNotify is transient: a unit could not be notified.
const codeNotify = "notify"

// notifyTimeout is how long one unit may take.
const notifyTimeout = 2 * time.Minute

// notifyUnits notifies the units of a need of the generation in force and records it
// afterwards: a process that dies in between notifies them again. Where one of them
// fails, the others are not notified again.
func (a *activation) notifyUnits(ctx context.Context, n *need, generation int) outcome {
	var done []string
	var failed error
	notified := map[string]int{}
	for _, unit := range n.OnChange {
		if notified[unit] = n.notified[unit]; notified[unit] == generation {
			continue
		}
		err := a.notifyUnit(ctx, unit)
		switch {
		case errors.Is(err, notify.ErrNobody):
			done = append(done, fmt.Sprintf("not restarted: %s: %v", unit, err))
		case err != nil:
			failed = errors.Join(failed, err)
			continue
		default:
			done = append(done, fmt.Sprintf("restarted %s", unit))
		}
		notified[unit] = generation
	}
	return outcome{n, func() {
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
	}}
}

func (a *activation) notifyUnit(ctx context.Context, unit string) error {
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	return a.Notify(ctx, unit)
}

func (a *activation) recordNotified(n *need, generation int) {
	n.notifyFailures, n.state.NotifiedGeneration = 0, generation
	if n.state.Error != nil && n.state.Error.Code == codeNotify {
		n.state.Error = nil
	}
	a.save(n)
}

func (a *activation) recordNotifyFailed(n *need, failed error) {
	n.notifyFailures++
	e := hostapi.Errorf(hostapi.Transient, codeNotify, "%v", failed)
	n.nextNotify = time.Now().Round(0).Add(a.Backoff.Wait(n.notifyFailures, e))
	if n.state.State == hostdir.NeedFulfilled {
		n.state.Error = needstate.NewError(e)
	}
	a.save(n)
	a.report(event.Event{Event: event.NotifyFailed, Need: n.ID, Attempt: n.notifyFailures, Kind: e.Kind, Code: e.Code, Message: e.Message, Next: n.nextNotify})
}
