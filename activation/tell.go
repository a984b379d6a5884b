package activation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"florete"
	"florete/activation/backoff"
	"florete/activation/notify"
	"florete/providers/api"
)

// codeNotify is transient: a unit could not be told.
const codeNotify = "notify"

// tell tells the units of a need what is in force. It is on record afterwards, so
// that whoever dies in between tells them again.
func (a *activation) tell(ctx context.Context, n *need, generation int) outcome {
	var failed error
	var told []florete.Action
	for _, action := range n.OnChange {
		err := a.Notify(ctx, action)
		if err != nil && !errors.Is(err, notify.ErrNobody) {
			failed = err
			break
		}
		told = append(told, action)
	}
	return outcome{n, func() {
		n.telling = false
		if failed != nil && ctx.Err() != nil {
			return
		}
		if failed != nil {
			n.tells++
			e := api.Errorf(api.Transient, codeNotify, "%v", failed)
			n.nextTell = time.Now().Round(0).Add(a.Backoff.Wait(n.tells, e))
			n.state.Error = &backoff.Error{Kind: e.Kind, Code: e.Code, Message: e.Message}
			a.save(n)
			a.report(Event{Event: EventUntold, Need: n.ID, Attempt: n.tells, Kind: e.Kind, Code: e.Code, Message: e.Message, Next: n.nextTell})
			return
		}
		n.tells, n.state.Told = 0, generation
		if n.state.Error != nil && n.state.Error.Code == codeNotify {
			n.state.Error = nil
		}
		a.save(n)
		for _, action := range told {
			a.report(Event{Event: EventTold, Need: n.ID, Message: fmt.Sprintf("%s: %s", action.Unit, action.Do)})
		}
	}}
}
