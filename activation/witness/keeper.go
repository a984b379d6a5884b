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
	// A host checks the audit logs of its providers first after witnessFirst to half an hour more,
	// and then every witnessEvery, varied by a half, so that not all hosts check at the same time.
	witnessFirst = time.Minute
	witnessEvery = time.Hour

	// witnessUnknown is the time for which a provider that never had an audit log is not asked
	// again.
	witnessUnknown = 24 * time.Hour
)

// Keeper checks the audit logs of a host's providers about once an hour. Only the goroutine that
// owns the needs may use it.
type Keeper struct {
	// Beside returns additional work to be done over the connections of a check. The work returns a
	// function that stores its results.
	Beside func(t *needstate.Table, pass *fetch.Pass, now time.Time) func(context.Context) (note func())

	// Changed is called when a fault of an audit log was found, or is gone.
	Changed func()

	next    time.Time
	busy    bool
	request int64                 // last request for an immediate check that was served
	unknown map[process]time.Time // end of the time for which a process is not asked
}

// process identifies a process of a provider host.
type process struct{ provider, kind string }

// Begin starts a check of the audit logs if it is due. It returns the time at which to call it
// again; zero means only after a change.
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

// logs returns the audit logs to check, one for each process of a provider, as last recorded.
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

// witnessSoon is the time within which hosts check the audit logs of their providers after a watch
// was cut off and is answered again, because the provider may have been replaced and may have lost
// its state.
const witnessSoon = 2 * time.Minute

// Soon schedules a check of the audit logs at a random time within witnessSoon.
func (k *Keeper) Soon() {
	if at := time.Now().Round(0).Add(rand.N(witnessSoon)); !k.next.IsZero() && at.Before(k.next) {
		k.next = at
	}
}

// Rewind corrects the time of the next check after the wall clock was set back, so that the wait
// does not become longer.
func (k *Keeper) Rewind(by time.Duration) { needstate.Rewind(by, &k.next) }

// requestAgain makes the needs due that were fulfilled by a process which may have lost its state.
// If the process has its state, it repeats its answers.
func requestAgain(t *needstate.Table, provider, kind string, now time.Time) {
	for _, n := range t.Needs {
		if n.Kind == kind && kind != document.KindConfig && n.State.Provider == provider && !n.Busy {
			n.RenewNow(now)
		}
	}
}

// ofLog returns a function that reports whether a record belongs to the log of a process.
func ofLog(provider, kind string) func(hostdir.Witnessed) bool {
	return func(w hostdir.Witnessed) bool { return w.Provider == provider && w.Kind == kind }
}

// fulfilledBy returns the time at which the process of a log last fulfilled a need of this host.
func fulfilledBy(t *needstate.Table, w hostdir.Witnessed) (last unixtime.Time) {
	for _, n := range t.Needs {
		if n.State.Provider == w.Provider && n.Kind == w.Kind && n.State.Fulfilled.After(last.Time) {
			last = n.State.Fulfilled
		}
	}
	return last
}

// witnessed records the answers of providers. The records of providers that this host no longer
// uses are kept, because it may use them again.
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
		} else if is = Withhold(l, failed[i].Reached, fulfilledBy(t, l), unixtime.Of(now), layout.Accepted()); is == l { // failures to connect are reported by the needs
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
