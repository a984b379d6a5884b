package needstate

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/florete/florete/activation/delivery"
	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/activation/fetch"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
)

const (
	// RefetchPoll is the interval at which the directory of requests is checked, and the shortest between
	// two requests that it causes for a need. Polling works under simulated time, where a watch
	// would not.
	RefetchPoll = 10 * time.Second

	// keyPoll is the interval at which the key by which this host proves itself is looked at, while a
	// need waits for that to change.
	keyPoll = 5 * time.Second

	// lookAgain is the shortest time between two looks at what others may change on disk: the end of
	// an attempt, which may be as many as there are needs, has no other need looked at.
	lookAgain = time.Second

	// OwnMost is the longest wait for a provider of this host itself: attempts harm nobody else,
	// and whoever installs what it lacks sees that at once.
	OwnMost = 10 * time.Second

	// EndedMost is the longest wait of a need whose certificate has ended: nothing works without it.
	EndedMost = 20 * time.Second
)

// Need is a need with how it stands.
type Need struct {
	document.Need
	State   State
	Digest  string
	Dir     delivery.Dir // of what it delivers
	Busy    bool         // an attempt is running
	Foreign bool         // a certificate that no root in force signed; one that comes back makes it good again
	Order   int          // the rotation that an operator ordered; zero for none

	table *Table
	seen  seen
	key   string // fetch.Host.KeySeen before the last attempt
}

// seen describes the files of a need on disk.
type seen struct {
	at              time.Time // zero to look again
	present         bool      // the files that it delivers
	generation      int       // in force, zero for none
	refetch, rotate int64     // see Table.Requested
}

// Begin begins with a need that was added. resumed is that an operator has started activation again.
func (n *Need) Begin(resumed bool) {
	n.Look(time.Now().Round(0))
	v := n.observe()
	n.State.RetryLocal(v.Now)
	n.State.Reconcile(v)
	if resumed {
		n.State.Resumed(v.Now)
	}
	if due, ok := n.State.Due(n.Renew); n.is(hostdir.NeedFulfilled) && (!ok || due.After(v.Now)) {
		n.table.Report(event.Event{Event: event.Kept, Need: n.ID, Provider: n.State.Provider, Message: n.origin(), Next: due})
	}
}

// Look brings what is known to be on disk up to date, and returns the generation in force; zero
// for none.
func (n *Need) Look(now time.Time) (generation int) {
	if now.Sub(n.seen.at).Abs() < lookAgain {
		return n.seen.generation
	}
	n.seen = seen{at: now, present: n.present(), refetch: n.table.Requested(n.ID), rotate: n.table.Requested(hostdir.RotateFile(n.ID))}
	if generation, err := n.Dir.Current(); err == nil {
		n.seen.generation = generation
	}
	return n.seen.generation
}

// LookAgain has the next Look read the disk.
func (n *Need) LookAgain() { n.seen = seen{} }

// present reports whether the files that the need delivers are there.
func (n *Need) present() bool {
	for name := range n.Deliver.Files {
		if _, err := os.Stat(filepath.Join(hostdir.Current(n.Dir.Path), name)); err != nil {
			return false
		}
	}
	return true
}

// observe returns the facts with which the state is reconciled now.
func (n *Need) observe() Observed {
	return Observed{Need: n.Need, Digest: n.Digest, Manifest: n.table.Manifest, Present: n.seen.present, Foreign: n.Foreign, Now: time.Now().Round(0)}
}

// Request calls attempt, with the number of it, where the need is to be requested, and returns when
// to call Request again; zero for not until something changes. due may change when the state has
// it requested.
func (n *Need) Request(now time.Time, due func(at time.Time, ok bool) (time.Time, bool), attempt func(number int)) (next time.Time) {
	t, s := n.table, &n.State
	n.Look(now)
	if t.Once && t.Tried[n.ID] {
		return next
	}
	if t.Refetch != "" {
		next = n.seen.at.Add(RefetchPoll)
	}
	s.Reconcile(n.observe())
	if n.awaitsKey() {
		if t.Host.KeySeen() != n.key {
			s.KeyChanged(now)
		}
		next = First(next, now.Add(keyPoll))
	}
	at, ok := due(s.Due(n.Renew))
	refetch, rotate, ordered := n.seen.refetch, n.seen.rotate, s.Ordered(n.Order)
	wanted := refetch != 0 && refetch != s.Rotation || rotate != 0 && rotate != s.RotateRequest || ordered
	if soon := s.LastAttempt.Add(RefetchPoll).Time; wanted && (!ok || soon.Before(at)) {
		at, ok = soon, true
	}
	if !ok {
		return next
	}
	if at.After(now) {
		return First(next, at)
	}
	if ids := t.blockers(n, now); len(ids) > 0 {
		n.block(ids, now)
		return next
	}
	n.Busy = true
	if t.Once {
		t.Tried[n.ID] = true
	}
	s.Rotation = refetch
	if rotate != 0 && rotate != s.RotateRequest {
		s.RequestRotation(rotate)
	}
	if ordered {
		s.WantRotation = n.Order
	}
	s.RotateByAge(n.Renew, now)
	number := s.Begin(n.observe())
	n.key = t.Host.KeySeen()
	attempt(number)
	return next
}

// awaitsKey reports whether the need waits for a change of the key by which this host proves itself.
func (n *Need) awaitsKey() bool {
	return (n.is(hostdir.NeedWaiting) || n.is(hostdir.NeedDenied)) && n.State.Error != nil && fetch.OfKey(n.State.Error.Code)
}

func (n *Need) block(by []string, now time.Time) {
	if n.is(hostdir.NeedBlocked) {
		return
	}
	n.State.Block(now)
	n.Save()
	n.table.Report(event.Event{Event: event.Blocked, Need: n.ID, BlockedBy: by})
	n.table.Changed()
}

// End notes that the attempt has ended.
func (n *Need) End() { n.Busy, n.seen = false, seen{} }

// CutOff notes that this host cut the attempt off: what is on disk holds.
func (n *Need) CutOff() { delete(n.table.Tried, n.ID) }

// Fulfil notes that what is delivered answers the need, by a provider; empty for none.
func (n *Need) Fulfil(provider string, answer hostapi.Answer) {
	n.Confirm(provider, answer)
	n.Forget()
	due, _ := n.State.Due(n.Renew)
	n.table.Report(event.Event{Event: event.Fulfilled, Need: n.ID, Provider: provider, Message: n.origin(), Attempt: n.State.Attempts, Next: due})
}

// Confirm does the same for what is no event, such as that nothing has changed.
func (n *Need) Confirm(provider string, answer hostapi.Answer) {
	n.Foreign = false
	n.State.Fulfil(n.observe(), provider, answer)
	n.Save()
}

// CountAttempt counts an attempt that Request did not begin.
func (n *Need) CountAttempt() { n.State.Begin(n.observe()) }

// Fail notes why an attempt failed.
func (n *Need) Fail(provider string, failed *fetch.Error) {
	if !failed.Received {
		provider = ""
	}
	n.State.Fail(n.observe(), provider, failed.Error, n.backoff())
	n.Save()
	n.reportFailed(provider, failed)
}

// DropRotation goes on with the secret in force.
func (n *Need) DropRotation(provider string, failed *fetch.Error) {
	n.reportFailed(provider, failed)
	n.State.DropRotation(time.Now().Round(0))
	n.Save()
	n.Forget()
}

func (n *Need) reportFailed(provider string, failed *fetch.Error) {
	n.table.Report(event.Event{
		Event: event.Failed, Need: n.ID, Provider: provider, Attempt: n.State.Attempts,
		Kind: failed.Kind, Code: failed.Code, Message: failed.Message, Next: n.State.Next.Time,
	})
}

func (n *Need) backoff() Backoff {
	b := n.table.Backoff
	if n.Kind == document.KindCert && !n.State.Expires.IsZero() {
		most := max(time.Until(n.State.Expires.Time), 0) + EndedMost
		b.Max = min(cmp.Or(b.Max, LongestWait), most)
	}
	if slices.Contains(n.Providers, n.table.Host.Manifest.Host) {
		b.Max = min(cmp.Or(b.Max, OwnMost), OwnMost)
	}
	return b
}

// RenewNow makes a fulfilled need due for renewal.
func (n *Need) RenewNow(now time.Time) {
	n.State.Renew(now)
	n.Save()
}

// Reinstate makes the need due where it was denied because this host was revoked: now, and where
// this process ends first, or other documents come in force.
func (n *Need) Reinstate(now time.Time) {
	if n.State.Reinstated(now) {
		n.Save()
	}
}

// Save writes what is known of the need. Without it a restart sends the request again, and
// gets the same answer.
func (n *Need) Save() {
	n.table.Step("save " + n.ID)
	if err := n.State.Save(n.table.Host.Layout, n.ID); err != nil {
		n.table.Disk(n.ID, err)
	}
}

// Forget drops a request that has its answer.
func (n *Need) Forget() {
	n.table.Step("forget " + n.ID)
	if err := n.table.Host.Forget(n.ID); err != nil {
		n.table.Disk(n.ID, err)
	}
}

// origin names the source of the need's answer in a provider's place; certificates are never adopted.
func (n *Need) origin() string {
	if n.Kind == document.KindCert && n.State.Provider == "" {
		return "an identity file"
	}
	return ""
}

func (n *Need) is(status hostdir.NeedStatus) bool { return n.State.State == status }
