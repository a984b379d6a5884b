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
	// A host first checks the audit logs of its providers after witnessFirst plus a random time of
	// at most half an hour. It repeats the check every witnessEvery. This interval varies by a
	// half, so that not all hosts check at the same time.
	witnessFirst = time.Minute
	witnessEvery = time.Hour

	// witnessUnknown is the time that the host waits before it asks a provider again that never had an
	// audit log.
	witnessUnknown = 24 * time.Hour
)

// Keeper checks the audit logs of a host's providers about once an hour and stores the results. It
// must be used only by the goroutine that owns the table of needs.
type Keeper struct {
	// Beside returns additional work that uses the connections of a check. In turn, the work
	// returns a function that stores its results.
	Beside func(t *needstate.Table, pass *fetch.Pass, now time.Time) func(context.Context) (note func())

	// Changed is called when a check finds a fault of an audit log, or finds that a fault is gone.
	Changed func()

	next    time.Time
	busy    bool
	request int64                 // identifies the last request for an immediate check that was served
	unknown map[process]time.Time // time until which a process is not asked
}

// process identifies a process on a provider host.
type process struct{ provider, kind string }

// Begin starts a check of the audit logs if one is due. It returns the time at which it must be
// called again, or the zero time if nothing is planned.
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

// logs returns the last records of the audit logs that must be checked. There is one log for each
// process of a provider.
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

// witnessSoon is the time within which a host checks the audit logs after a provider answers
// watches again that had been cut off. The provider may have been replaced in the meantime, and may
// have lost its state.
const witnessSoon = 2 * time.Minute

// Soon plans a check of the audit logs at a random time within the next two minutes.
func (k *Keeper) Soon() {
	if at := time.Now().Round(0).Add(rand.N(witnessSoon)); !k.next.IsZero() && at.Before(k.next) {
		k.next = at
	}
}

// Rewind moves the next check to an earlier time after the wall clock was set back by the given
// amount, so that the check is not delayed.
func (k *Keeper) Rewind(by time.Duration) { needstate.Rewind(by, &k.next) }

// requestAgain makes needs due that were fulfilled by a provider process which may have lost its
// state. If the process still has its state, it gives the same answers again.
func requestAgain(t *needstate.Table, provider, kind string, now time.Time) {
	for _, n := range t.Needs {
		if n.Kind == kind && kind != document.KindConfig && n.State.Provider == provider && !n.Busy {
			n.RenewNow(now)
		}
	}
}

// ofLog returns a function that reports whether a record belongs to the audit log of the given
// process.
func ofLog(provider, kind string) func(hostdir.Witnessed) bool {
	return func(w hostdir.Witnessed) bool { return w.Provider == provider && w.Kind == kind }
}

// fulfilledBy returns the time at which a provider process last fulfilled a need of this host. The
// process is the one to which the audit log belongs.
func fulfilledBy(t *needstate.Table, w hostdir.Witnessed) (last unixtime.Time) {
	for _, n := range t.Needs {
		if n.State.Provider == w.Provider && n.Kind == w.Kind && n.State.Fulfilled.After(last.Time) {
			last = n.State.Fulfilled
		}
	}
	return last
}

// witnessed records the checkpoints that providers returned. It keeps the records of providers that
// this host no longer uses, because the host may use them again.
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
