package activation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/activation/needstate"
	"github.com/florete/florete/activation/notify"
	"github.com/florete/florete/providers/api"
)

// codeNotify is transient: a unit could not be told.
const codeNotify = "notify"

// tellTimeout is how long one unit may take.
const tellTimeout = 2 * time.Minute

// tell tells the units of a need what is in force. It is on record afterwards, so
// that whoever dies in between tells them again. Where one cannot be told, the others
// are not told again.
func (a *activation) tell(ctx context.Context, n *need, generation int) outcome {
	var said []string
	var failed error
	heard := map[florete.Action]int{}
	for _, action := range n.OnChange {
		if heard[action] = n.heard[action]; heard[action] == generation {
			continue
		}
		err := a.tellOne(ctx, action)
		switch {
		case errors.Is(err, notify.ErrNobody):
			said = append(said, fmt.Sprintf("nobody to tell: %s: %s: %v", action.Unit, action.Action, err))
		case err != nil:
			failed = errors.Join(failed, err)
			continue
		default:
			said = append(said, fmt.Sprintf("told %s: %s", action.Unit, action.Action))
		}
		heard[action] = generation
	}
	return outcome{n, func() {
		n.telling, n.heard = false, heard
		for _, text := range said {
			a.report(Event{Event: EventTold, Need: n.ID, Message: text})
		}
		switch {
		case failed == nil:
			a.toldAll(n, generation)
		case ctx.Err() == nil:
			a.toldNot(n, failed)
		}
	}}
}

func (a *activation) tellOne(ctx context.Context, action florete.Action) error {
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	return a.Notify(ctx, action)
}

func (a *activation) toldAll(n *need, generation int) {
	n.tells, n.state.Told = 0, generation
	if n.state.Error != nil && n.state.Error.Code == codeNotify {
		n.state.Error = nil
	}
	a.save(n)
}

func (a *activation) toldNot(n *need, failed error) {
	n.tells++
	e := api.Errorf(api.Transient, codeNotify, "%v", failed)
	n.nextTell = time.Now().Round(0).Add(a.Backoff.Wait(n.tells, e))
	if n.state.State == needstate.Fulfilled {
		n.state.Error = &needstate.Error{Kind: e.Kind, Code: e.Code, Message: e.Message}
	}
	a.save(n)
	a.report(Event{Event: EventUntold, Need: n.ID, Attempt: n.tells, Kind: e.Kind, Code: e.Code, Message: e.Message, Next: n.nextTell})
}
