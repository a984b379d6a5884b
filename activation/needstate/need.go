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
	// RefetchPoll is the interval at which activation looks for requests of people, which are files
	// in Table.Refetch. It is also the minimum time between two such requests for a need. The
	// directory is polled instead of watched, because polling works with the simulated time of
	// tests.
	RefetchPoll = 10 * time.Second

	// keyPoll is the interval at which a need that waits for another key of this host looks for
	// that key.
	keyPoll = 5 * time.Second

	// lookAgain is the minimum time between two checks of a need's files, which other processes may
	// change. Without this limit, the end of each attempt would cause a check of all needs.
	lookAgain = time.Second

	// OwnMost is the longest wait before the next attempt if the provider runs on this host itself.
	// Such attempts burden no other host, and an operator who repairs the provider sees the effect
	// quickly.
	OwnMost = 10 * time.Second

	// EndedMost is the longest wait before the next attempt if the need's certificate has expired,
	// because the services that use the certificate do not work until then.
	EndedMost = 20 * time.Second
)

// Need is one entry of the manifest that declares files which the host must fetch from a provider.
// Besides the declaration, it contains the state of the work on it, such as the next attempt.
type Need struct {
	document.Need
	State   State
	Digest  string
	Dir     delivery.Dir // directory of its delivered files
	Busy    bool         // an attempt is running
	Foreign bool         // no root in force signed the delivered certificate; it is valid again if such a root comes back
	Order   int          // number of the secret rotation that an operator ordered; zero for none

	table *Table
	seen  seen
	key   string // fetch.Host.KeySeen before the last attempt
}

// seen describes the files of a need, as they were found on disk by the last check.
type seen struct {
	at              time.Time // time of the check; zero if the next call must check again
	present         bool      // the delivered files exist
	generation      int       // current generation, zero for none
	refetch, rotate int64     // see Table.Requested
}

// Begin prepares a need that was just added to the table. If the delivered files are still valid,
// it reports this as an event. If resumed is true, an operator has restarted activation, and a need
// that waits or was refused is due at once.
func (n *Need) Begin(resumed bool) {
	now := time.Now().Round(0)
	n.Look(now)
	v := n.observe(now)
	n.State.RetryLocal(now)
	n.State.Reconcile(v)
	if resumed {
		n.State.Resumed(now)
	}
	if due, ok := n.State.Due(n.Renew); n.is(hostdir.NeedFulfilled) && (!ok || due.After(now)) {
		n.table.Report(event.Event{Event: event.Kept, Need: n.ID, Provider: n.State.Provider, Message: n.origin(), Next: due})
	}
}

// Look checks which files of the need are on disk, and returns the number of their current
// generation, or zero if there is none. If the last check was less than a second ago, Look returns
// the earlier result.
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

// LookAgain makes the next call of Look check the disk, even if the last check was just made.
func (n *Need) LookAgain() { n.seen = seen{} }

// present reports whether all files that the need delivers exist.
func (n *Need) present() bool {
	for name := range n.Deliver.Files {
		if _, err := os.Stat(filepath.Join(hostdir.Current(n.Dir.Path), name)); err != nil {
			return false
		}
	}
	return true
}

// observe returns the facts about the need that its state must be consistent with.
func (n *Need) observe(now time.Time) Observed {
	return Observed{Need: n.Need, Digest: n.Digest, Manifest: n.table.Manifest, Present: n.seen.present, Foreign: n.Foreign, Now: now}
}

// Request starts an attempt if the need is due, by calling attempt with the number of the attempt.
// It reads no clock but uses now, because the wall clock may be set back at any moment.
// The time at which the need is due is first passed to the function due, which may return another
// one. Request returns the time at which it must be called again, or the zero time if nothing is
// planned.
func (n *Need) Request(now time.Time, due func(at time.Time, ok bool) (time.Time, bool), attempt func(number int)) (next time.Time) {
	t, s := n.table, &n.State
	n.Look(now)
	if t.Once && t.Tried[n.ID] {
		return next
	}
	if t.Refetch != "" {
		next = n.seen.at.Add(RefetchPoll)
	}
	s.Reconcile(n.observe(now))
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
	number := s.Begin(n.observe(now))
	n.key = t.Host.KeySeen()
	attempt(number)
	return next
}

// awaitsKey reports whether the last attempt failed because of the key that identifies this host.
// The next attempt then waits until the key changes.
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

// End records that the running attempt has ended. The caller records the result with a separate
// call, for example of Fulfil or Fail.
func (n *Need) End() { n.Busy, n.seen = false, seen{} }

// CutOff records that this host itself has aborted the attempt. The need can then be tried again,
// and its state on disk does not change.
func (n *Need) CutOff() { delete(n.table.Tried, n.ID) }

// Fulfil records that the need is fulfilled and reports an event. It must be called after the
// answer was delivered to disk. The provider is empty if the files came from an identity file.
func (n *Need) Fulfil(provider string, answer hostapi.Answer) {
	n.Confirm(provider, answer)
	n.Forget()
	due, _ := n.State.Due(n.Renew)
	n.table.Report(event.Event{Event: event.Fulfilled, Need: n.ID, Provider: provider, Message: n.origin(), Attempt: n.State.Attempts, Next: due})
}

// Confirm records that the need is fulfilled, like Fulfil, but does not report an event. It is used
// if the delivered files have not changed.
func (n *Need) Confirm(provider string, answer hostapi.Answer) {
	n.Foreign = false
	n.State.Fulfil(n.observe(time.Now().Round(0)), provider, answer)
	n.Save()
}

// CountAttempt counts an attempt that was not begun by Request.
func (n *Need) CountAttempt() { n.State.Begin(n.observe(time.Now().Round(0))) }

// Fail records that an attempt has failed, plans the next attempt, and reports an event.
func (n *Need) Fail(provider string, failed *fetch.Error) {
	if !failed.Received {
		provider = ""
	}
	n.State.Fail(n.observe(time.Now().Round(0)), provider, failed.Error, n.backoff())
	n.Save()
	n.reportFailed(provider, failed)
}

// DropRotation gives up the replacement of a secret after the provider has refused it. The old
// secret stays in use.
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

// RenewNow makes a fulfilled need due for renewal now.
func (n *Need) RenewNow(now time.Time) {
	n.State.Renew(now)
	n.Save()
}

// Reinstate makes the need due at once if it was denied because this host was revoked. It also
// writes the new state to disk.
func (n *Need) Reinstate(now time.Time) {
	if n.State.Reinstated(now) {
		n.Save()
	}
}

// Save writes the state of the need to disk. It reports a failure as an event. A lost state does no
// harm, because the host then repeats its request and gets the same answer.
func (n *Need) Save() {
	n.table.Step("save " + n.ID)
	if err := n.State.Save(n.table.Host.Layout, n.ID); err != nil {
		n.table.Disk(n.ID, err)
	}
}

// Forget removes the stored request for the need from disk. It is called after the request was
// answered.
func (n *Need) Forget() {
	n.table.Step("forget " + n.ID)
	if err := n.table.Host.Forget(n.ID); err != nil {
		n.table.Disk(n.ID, err)
	}
}

// origin returns "an identity file" for a certificate that no provider delivered, because
// certificates are never adopted from existing files. For all other needs it returns "".
func (n *Need) origin() string {
	if n.Kind == document.KindCert && n.State.Provider == "" {
		return "an identity file"
	}
	return ""
}

func (n *Need) is(status hostdir.NeedStatus) bool { return n.State.State == status }
