package witness

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/activation/fetch"
	"github.com/florete/florete/activation/needstate"
	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/unixtime"
)

const (
	// A host witnesses the audit logs of its providers after witnessFirst, or within half an hour of
	// that, and then every witnessEvery, give or take a half: not all hosts at once.
	witnessFirst = time.Minute
	witnessEvery = time.Hour

	// For witnessUnknown a provider that never had an audit log to witness is left alone.
	witnessUnknown = 24 * time.Hour
)

// Keeper witnesses the audit logs of a host's providers, each hour or so. It belongs to the goroutine
// that owns the needs.
type Keeper struct {
	// Beside returns what else to do over the connections of a pass, and what to note then.
	Beside func(t *needstate.Table, pass *fetch.Pass, now time.Time) func(context.Context) (note func())

	// Changed is called when something else is wrong with a log than before.
	Changed func()

	next    time.Time
	busy    bool
	request int64                 // to witness at once that was served last
	unknown map[process]time.Time // until when each is left alone
}

// process is one of a provider host.
type process struct{ provider, kind string }

// Begin starts to witness where it is time, and returns when to come back; zero for not by itself.
func (k *Keeper) Begin(now time.Time, t *needstate.Table, start needstate.Start) time.Time {
	if t.Once || k.busy {
		return time.Time{}
	}
	if k.next.IsZero() {
		k.request = t.Requested(hostdir.WitnessFile)
		k.next, k.unknown = now.Add(witnessFirst+rand.N(witnessEvery/2)), map[process]time.Time{}
	}
	if r := t.Requested(hostdir.WitnessFile); r != k.request {
		k.request, k.next = r, now
		clear(k.unknown)
	}
	if k.next.After(now) {
		return k.next
	}
	known, err := t.Host.Layout.Witnessed()
	if err != nil {
		t.Report(event.Event{Event: event.Disk, Need: "witnessed", Message: err.Error() + ": begins anew"})
	}
	logs := k.logs(t, known, now)
	k.busy = true
	pass := t.Host.Pass()
	beside := k.Beside(t, pass, now)
	start(func(ctx context.Context) func() {
		defer pass.Leave()
		var answers []hostapi.Checkpoint
		var failed []*hostapi.Error
		for _, l := range logs {
			answer, e := pass.Checkpoint(ctx, l.Provider, l.Kind, uint64(l.Size))
			answers, failed = append(answers, answer), append(failed, e)
		}
		note := beside(ctx)
		return func() { k.witnessed(t, known, logs, answers, failed); note() }
	})
	return time.Time{}
}

// logs returns the audit logs to witness: of each provider, as far as it is known.
func (k *Keeper) logs(t *needstate.Table, known []hostdir.Witnessed, now time.Time) (logs []hostdir.Witnessed) {
	accepted := t.Host.Layout.Accepted()
	for _, n := range t.Needs {
		for _, provider := range n.Providers {
			at := ofLog(provider, n.Kind)
			if slices.ContainsFunc(logs, at) {
				continue
			}
			if i := slices.IndexFunc(known, at); i >= 0 {
				logs = append(logs, GoOn(known[i], accepted))
			} else if n.State.State == hostdir.NeedFulfilled && !k.unknown[process{provider, n.Kind}].After(now) {
				logs = append(logs, hostdir.Witnessed{Provider: provider, Kind: n.Kind})
			}
		}
	}
	return logs
}

// witnessSoon is within which time hosts witness the audit logs of their providers after a watch
// was cut off and is answered again: the provider may be another, without the state of before.
const witnessSoon = 2 * time.Minute

// Soon has the audit logs witnessed soon.
func (k *Keeper) Soon() {
	if at := time.Now().Round(0).Add(rand.N(witnessSoon)); !k.next.IsZero() && at.Before(k.next) {
		k.next = at
	}
}

// Rewind keeps the wait as long as it was meant when the clock was set back.
func (k *Keeper) Rewind(by time.Duration) { needstate.Rewind(by, &k.next) }

// requestAgain makes the needs due that a process fulfilled whose state may be lost. It answers as
// before where it is not.
func requestAgain(t *needstate.Table, provider, kind string, now time.Time) {
	for _, n := range t.Needs {
		if n.Kind == kind && kind != document.KindConfig && n.State.Provider == provider && !n.Busy {
			n.RenewNow(now)
		}
	}
}

// ofLog tells the log of a process from others.
func ofLog(provider, kind string) func(hostdir.Witnessed) bool {
	return func(w hostdir.Witnessed) bool { return w.Provider == provider && w.Kind == kind }
}

// fulfilledBy returns when the process of a log last fulfilled a need of this host.
func fulfilledBy(t *needstate.Table, w hostdir.Witnessed) (last unixtime.Time) {
	for _, n := range t.Needs {
		if n.State.Provider == w.Provider && n.Kind == w.Kind && n.State.Fulfilled.After(last.Time) {
			last = n.State.Fulfilled
		}
	}
	return last
}

// witnessed notes what providers returned. Logs of those that are of no use to this host any
// more stay: they may be again.
func (k *Keeper) witnessed(t *needstate.Table, known, logs []hostdir.Witnessed, answers []hostapi.Checkpoint, failed []*hostapi.Error) {
	layout, now := t.Host.Layout, time.Now().Round(0)
	k.busy, k.next = false, now.Add(witnessEvery/2+rand.N(witnessEvery))
	changed := false
	for i, l := range logs {
		var is hostdir.Witnessed
		if failed[i] == nil {
			if is = Take(l, answers[i], unixtime.Of(now)); Lost(l, is) {
				requestAgain(t, l.Provider, l.Kind, now)
			}
		} else if is = Withhold(l, failed[i].Reached, fulfilledBy(t, l), unixtime.Of(now), layout.Accepted()); is == l { // the needs report who does not answer
			if failed[i].Code == hostapi.CodeUnknownMethod.Name {
				k.unknown[process{l.Provider, l.Kind}] = now.Add(witnessUnknown)
			}
			continue
		}
		if is.Fault != "" && is.Fault != l.Fault {
			t.Report(event.Event{Event: event.Audit, Provider: l.Provider, Message: fmt.Sprintf("audit log of kind %s: %s", l.Kind, is.Fault)})
		}
		if is.Fault != l.Fault {
			k.Changed()
		}
		changed = true
		if j := slices.IndexFunc(known, ofLog(l.Provider, l.Kind)); j >= 0 {
			known[j] = is
		} else {
			known = append(known, is)
		}
	}
	if !changed {
		return
	}
	b, err := json.Marshal(known)
	if err == nil {
		err = atomicfile.File(layout.WitnessedFile(), append(b, '\n'), 0o644)
	}
	if err != nil {
		t.Disk("witnessed", err)
	}
}
