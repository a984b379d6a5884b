package activation

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/activation/witness"
	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/unixtime"
)

const (
	// witnessFirst is when a host witnesses the audit logs of its providers first, or within half
	// an hour of that, witnessEvery how often, give or take a half: not all hosts at once.
	witnessFirst = time.Minute
	witnessEvery = time.Hour

	// witnessUnknown is how long a provider is left alone that never had an audit log to witness,
	// like one of an older release.
	witnessUnknown = 24 * time.Hour
)

// witnesser knows when the host witnesses next.
type witnesser struct {
	next    time.Time
	busy    bool
	request int64                 // to witness at once that was served last
	unknown map[process]time.Time // until when each is left alone
}

// witnessLogs starts to witness the audit logs of this host's providers where it is time, and
// returns when to come back.
func (a *activation) witnessLogs(now time.Time, start func(func(context.Context) outcome)) time.Time {
	w := &a.witnesser
	if a.Once || w.busy {
		return now.Add(maxSleep)
	}
	if w.next.IsZero() {
		w.request = a.requested(hostdir.WitnessFile)
		w.next, w.unknown = now.Add(witnessFirst+rand.N(witnessEvery/2)), map[process]time.Time{}
	}
	if r := a.requested(hostdir.WitnessFile); r != w.request {
		w.request, w.next = r, now
		clear(w.unknown)
	}
	if w.next.After(now) {
		return w.next
	}
	known, err := a.State.Witnessed()
	if err != nil {
		a.report(event.Event{Event: event.Disk, Need: "witnessed", Message: err.Error() + ": begins anew"})
	}
	var logs []hostdir.Witnessed
	accepted := a.State.Accepted()
	for _, n := range a.needs {
		for _, provider := range n.Providers {
			at := ofLog(provider, n.Kind)
			if slices.ContainsFunc(logs, at) {
				continue
			}
			if i := slices.IndexFunc(known, at); i >= 0 {
				logs = append(logs, witness.GoOn(known[i], accepted))
			} else if n.state.State == hostdir.NeedFulfilled && !w.unknown[process{provider, n.Kind}].After(now) {
				logs = append(logs, hostdir.Witnessed{Provider: provider, Kind: n.Kind})
			}
		}
	}
	w.busy = true
	pass := a.host.Pass()
	crls := func(context.Context) func() { return func() {} }
	if !a.crls.busy && !a.crls.next.IsZero() {
		crls = a.crlsOver(pass, now)
	}
	start(func(ctx context.Context) outcome {
		defer pass.Leave()
		var answers []hostapi.Checkpoint
		var failed []*hostapi.Error
		for _, l := range logs {
			answer, e := pass.Checkpoint(ctx, l.Provider, l.Kind, uint64(l.Size))
			answers, failed = append(answers, answer), append(failed, e)
		}
		noteCRLs := crls(ctx)
		return outcome{nil, func() { a.witnessed(known, logs, answers, failed); noteCRLs() }}
	})
	return now.Add(maxSleep)
}

// witnessSoon is within which time hosts witness the audit logs of their providers after a watch
// was cut off and is answered again: the provider may be another, without the state of before.
const witnessSoon = 2 * time.Minute

// witnessAgain has the audit logs witnessed soon.
func (a *activation) witnessAgain(now time.Time) {
	if at := now.Add(rand.N(witnessSoon)); !a.witnesser.next.IsZero() && at.Before(a.witnesser.next) {
		a.witnesser.next = at
	}
}

// requestAgain makes the needs due that a process fulfilled whose state may be lost. It answers as
// before where it is not.
func (a *activation) requestAgain(provider, kind string, now time.Time) {
	for _, n := range a.needs {
		if n.Kind == kind && n.Kind != document.KindConfig && n.state.Provider == provider && !n.busy {
			n.state.Renew(now)
			a.save(n)
		}
	}
}

// process is one of a provider host.
type process struct{ provider, kind string }

// ofLog tells the log of a process from others.
func ofLog(provider, kind string) func(hostdir.Witnessed) bool {
	return func(w hostdir.Witnessed) bool { return w.Provider == provider && w.Kind == kind }
}

// fulfilledBy returns when the process of a log last fulfilled a need of this host.
func (a *activation) fulfilledBy(w hostdir.Witnessed) (last unixtime.Time) {
	for _, n := range a.needs {
		if n.state.Provider == w.Provider && n.Kind == w.Kind && n.state.Fulfilled.After(last.Time) {
			last = n.state.Fulfilled
		}
	}
	return last
}

// witnessed notes what providers returned. Logs of those that are of no use to this host any
// more stay: they may be again.
func (a *activation) witnessed(known, logs []hostdir.Witnessed, answers []hostapi.Checkpoint, failed []*hostapi.Error) {
	w, now := &a.witnesser, time.Now().Round(0)
	w.busy, w.next = false, now.Add(witnessEvery/2+rand.N(witnessEvery))
	changed := false
	for i, l := range logs {
		var is hostdir.Witnessed
		if failed[i] == nil {
			if is = witness.Take(l, answers[i], unixtime.Of(now)); witness.Lost(l, is) {
				a.requestAgain(l.Provider, l.Kind, now)
			}
		} else if is = witness.Withhold(l, failed[i].Reached, a.fulfilledBy(l), unixtime.Of(now), a.State.Accepted()); is == l { // the needs report who does not answer
			if failed[i].Code == hostapi.CodeUnknownMethod {
				w.unknown[process{l.Provider, l.Kind}] = now.Add(witnessUnknown)
			}
			continue
		}
		if is.Fault != "" && is.Fault != l.Fault {
			a.report(event.Event{Event: event.Audit, Provider: l.Provider, Message: fmt.Sprintf("audit log of kind %s: %s", l.Kind, is.Fault)})
		}
		if is.Fault != l.Fault {
			a.reporter.look = now
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
		err = atomicfile.File(a.State.WitnessedFile(), append(b, '\n'), 0o644)
	}
	if err != nil {
		a.report(event.Event{Event: event.Disk, Need: "witnessed", Message: err.Error()})
	}
}
