package activation

import (
	"os"
	"path/filepath"
	"time"

	"github.com/florete/florete/activation/delivery"
	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/activation/fetch"
	"github.com/florete/florete/activation/needstate"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
)

// need is a need with how it stands.
type need struct {
	document.Need
	digest string
	dir    delivery.Dir // of what it delivers
	state  needstate.State
	seen   seen
	busy   bool // an attempt is running

	foreign bool // a certificate that no root in force signed; one that comes back makes it good again

	key      string // fetch.Host.KeySeen before the last attempt
	enrolled int64  // the identity file that the last attempt was for, see activation.enrolled

	notifying      bool           // units are being notified
	notifyFailures int            // in a row
	notified       map[string]int // the generation that a unit was notified of in this run
	nextNotify     time.Time
}

// lookAgain is how long what others may change on disk is not looked at again: what an attempt
// comes to, which may be as many as there are needs, has no other need looked at.
const lookAgain = time.Second

// seen is what is on disk of a need.
type seen struct {
	at              time.Time // zero to look again
	present         bool      // the files that it delivers
	generation      int       // in force, zero for none
	refetch, rotate int64     // see requested
}

// look brings what is known to be on disk up to date.
func (a *activation) look(n *need, now time.Time) {
	if now.Sub(n.seen.at).Abs() < lookAgain {
		return
	}
	n.seen = seen{at: now, present: a.present(n), refetch: a.requested(n.ID), rotate: a.requested(hostdir.RotateFile(n.ID))}
	if generation, err := n.dir.Current(); err == nil {
		n.seen.generation = generation
	}
}

// load opens what is known of a need.
func (a *activation) load(n document.Need) *need {
	l := &need{Need: n, digest: needstate.Digest(n), dir: delivery.Dir{Path: a.State.Need(n.ID), Step: a.Step}}
	if n.Kind == document.KindConfig {
		l.dir.Path = a.State.Documents() // which the store cleans
	} else if err := l.dir.Clean(); err != nil {
		a.report(event.Event{Event: event.Disk, Need: n.ID, Message: err.Error()})
	}
	var err error
	if l.state.NeedState, err = a.State.NeedState(n.ID); err != nil {
		a.report(event.Event{Event: event.Disk, Need: n.ID, Message: err.Error() + ": begins anew"})
	}
	l.foreign = n.Kind == document.KindCert && !a.host.Trusts(n)
	if a.host.Answered(n.ID, l.state.Answers) {
		a.forget(l)
	}
	a.deliverBundle(l)
	a.look(l, time.Now().Round(0))
	v := a.observe(l)
	l.state.RetryLocal(v.Now)
	l.state.Reconcile(v)
	if a.resumed {
		l.state.Resumed(v.Now)
	}
	if due, ok := l.state.Due(n.Renew); l.state.State == hostdir.NeedFulfilled && (!ok || due.After(v.Now)) {
		a.report(event.Event{Event: event.Kept, Need: n.ID, Provider: l.state.Provider, Message: l.origin(), Next: due})
	}
	return l
}

// observe is what the need's state is reconciled with now.
func (a *activation) observe(n *need) needstate.Observed {
	return needstate.Observed{Need: n.Need, Digest: n.digest, Manifest: a.manifest, Present: n.seen.present, Foreign: n.foreign, Now: time.Now().Round(0)}
}

// present reports whether the files that a need delivers are there.
func (a *activation) present(n *need) bool {
	for name := range n.Deliver.Files {
		if _, err := os.Stat(filepath.Join(hostdir.Current(n.dir.Path), name)); err != nil {
			return false
		}
	}
	return true
}

// usable reports whether needs that depend on n can go on.
func (n *need) usable(now time.Time) bool { return !n.foreign && n.state.Usable(n.digest, now) }

// awaitsKey reports whether n waits for a change of the key by which this host proves itself.
func (n *need) awaitsKey() bool {
	waits := n.state.State == hostdir.NeedWaiting || n.state.State == hostdir.NeedDenied
	return waits && n.state.Error != nil && fetch.OfKey(n.state.Error.Code)
}

// blockers are the needs that n has to wait for.
func (a *activation) blockers(n *need, now time.Time) (ids []string) {
	for _, id := range n.DependsOn {
		for _, other := range a.needs {
			if other.ID == id && !other.usable(now) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// owed reports whether units are yet to be notified of the generation in force.
func (n *need) owed() bool {
	return len(n.OnChange) > 0 && n.seen.generation > n.state.NotifiedGeneration
}

// save writes what is known of a need. Without it a restart sends the request again, and
// gets the same answer.
func (a *activation) save(n *need) {
	a.Step("save " + n.ID)
	if err := n.state.Save(a.State, n.ID); err != nil {
		a.report(event.Event{Event: event.Disk, Need: n.ID, Message: err.Error()})
	}
}

// forget drops a request that has its answer.
func (a *activation) forget(n *need) {
	a.Step("forget " + n.ID)
	if err := a.host.Forget(n.ID); err != nil {
		a.report(event.Event{Event: event.Disk, Need: n.ID, Message: err.Error()})
	}
}
