package needstate

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/unixtime"
)

// State is what activation knows of a need, with the transitions that only activation makes.
type State struct{ hostdir.NeedState }

// Save writes s where Layout.NeedState finds it.
func (s State) Save(l hostdir.Layout, need string) error {
	b, err := json.Marshal(s.NeedState)
	if err != nil {
		return err
	}
	return atomicfile.FileIn(l.NeedStateFile(need), append(b, '\n'), 0o644)
}

// setStatus changes the status.
func (s *State) setStatus(status hostdir.NeedStatus, now time.Time) {
	if s.State != status {
		s.State, s.StateSince = status, unixtime.Of(now)
	}
}

// Observed has the facts to which Reconcile fits a state.
type Observed struct {
	Need     document.Need
	Digest   string // of the need
	Manifest string // digest of the manifest in force
	Present  bool   // what Need.Deliver names is on disk
	Foreign  bool   // it is a certificate that no root of the manifest signed
	Now      time.Time
}

// Reconcile fits a state, which may be of a former manifest or from before the clock
// was set back, to the present.
func (s *State) Reconcile(v Observed) {
	s.rewind(v.Now)
	changed := s.Manifest != v.Manifest
	switch {
	case s.State == "":
		s.setStatus(hostdir.NeedWaiting, v.Now)
	case s.State == hostdir.NeedFulfilled && (s.Digest != v.Digest || !v.Present || v.Foreign):
		s.restart(v.Now)
	case (s.State == hostdir.NeedDenied || s.State == hostdir.NeedInvalid) && changed:
		s.restart(v.Now)
	case s.State == hostdir.NeedWaiting && changed && s.Error != nil && s.Error.Code != hostapi.CodeBusy.Name && s.Error.Code != hostapi.CodeFull.Name:
		// Another address, or another root, may have been what it waited for.
		s.hurry()
	}
	if !v.Present {
		s.Digest = ""
	}
	if s.State == hostdir.NeedFulfilled && s.exact(v.Need.Renew).IsZero() && s.Next.After(v.Now) {
		s.Next = unixtime.Time{} // a former manifest had it renewed then
	}
}

// RetryLocal makes a need due at once when this host itself refused it: no provider
// received the request, and the cause may be gone.
func (s *State) RetryLocal(now time.Time) {
	if (s.State == hostdir.NeedInvalid || s.State == hostdir.NeedDenied) && s.Provider == "" {
		s.restart(now)
	}
}

// KeyChanged makes a need due at once that waits for the key by which this host proves itself,
// since that was written.
func (s *State) KeyChanged(now time.Time) { s.restart(now) }

// Resumed makes a need due at once that waits, or was refused: an operator has started activation
// again, and may have mended what it waited for.
func (s *State) Resumed(now time.Time) {
	switch s.State {
	case hostdir.NeedDenied, hostdir.NeedInvalid:
		s.restart(now)
	case hostdir.NeedWaiting:
		s.hurry()
	}
}

// ClockChanged makes a need due at once that failed because of a wrong clock.
func (s *State) ClockChanged(now time.Time) {
	if s.State == hostdir.NeedWaiting && s.Error != nil && s.Error.Code == hostapi.CodeClock.Name {
		s.restart(now)
	}
}

// Reinstated makes a need due at once that was denied because this host was revoked, and reports
// whether it was.
func (s *State) Reinstated(now time.Time) bool {
	was := s.State == hostdir.NeedDenied && s.Error != nil && s.Error.Code == hostapi.CodeRevoked.Name
	if was {
		s.restart(now)
	}
	return was
}

// Renew makes a fulfilled need due for renewal at a time, unless it is due before.
func (s *State) Renew(at time.Time) {
	if s.State == hostdir.NeedFulfilled && (s.Next.IsZero() || at.Before(s.Next.Time)) {
		s.Next = unixtime.Of(at)
	}
}

// restart starts a new effort now.
func (s *State) restart(now time.Time) {
	s.setStatus(hostdir.NeedWaiting, now)
	s.Error, s.InvalidInRow = nil, 0
	s.hurry()
}

// hurry has the next attempt be the first of an effort, as soon as the provider lets it be.
func (s *State) hurry() { s.Attempts, s.Next = 0, s.NotBefore }

// rewind keeps the waits as long as they were meant when the clock was set back
// behind what was recorded, and cuts those that no rule here has made.
func (s *State) rewind(now time.Time) {
	const rounding = time.Second // of what is on disk
	if back := s.LastAttempt.Sub(now); back > rounding {
		s.LastAttempt = unixtime.Of(now)
		for _, t := range []*unixtime.Time{&s.Next, &s.NotBefore} {
			if !t.IsZero() {
				*t = t.Add(-back)
			}
		}
	}
	if back := s.Fulfilled.Sub(now); back > rounding {
		s.Fulfilled = unixtime.Of(now)
	}
	if back := s.Rotated.Sub(now); back > rounding {
		s.Rotated = unixtime.Of(now)
	}
	if s.StateSince.Sub(now) > rounding {
		s.StateSince = unixtime.Of(now)
	}
	if most := unixtime.Of(now).Add(longest); s.State != hostdir.NeedFulfilled && s.Next.After(most.Time) {
		s.Next = most
	}
	if most := unixtime.Of(now).Add(longest); s.NotBefore.After(most.Time) {
		s.NotBefore = most
	}
}

// Due returns the time of the next request; false for never, or not until something
// changes.
func (s State) Due(r document.Renew) (time.Time, bool) {
	switch s.State {
	case hostdir.NeedInvalid:
		return time.Time{}, false
	case hostdir.NeedFulfilled:
		return s.renewal(r)
	}
	return s.Next.Time, true
}

// renewal is Next, which carries the jitter, unless the manifest now has an earlier one;
// never after the expiry, nor sooner than a second.
func (s State) renewal(r document.Renew) (time.Time, bool) {
	at := s.exact(r)
	if !s.Next.IsZero() && (at.IsZero() || s.Next.Before(at.Time)) {
		at = s.Next
	}
	if at.IsZero() {
		return s.Expires.Time, !s.Expires.IsZero()
	}
	if !s.Expires.IsZero() && s.Expires.Before(at.Time) {
		at = s.Expires
	}
	if least := s.Fulfilled.Add(time.Second); at.Before(least.Time) {
		at = least
	}
	return at.Time, true
}

// exact returns the time of the renewal without jitter, zero for never.
func (s State) exact(r document.Renew) (at unixtime.Time) {
	first := func(t unixtime.Time) {
		if at.IsZero() || t.Before(at.Time) {
			at = t
		}
	}
	if r.AtPercent > 0 && !s.Expires.IsZero() {
		first(s.Fulfilled.Add(s.Expires.Sub(s.Fulfilled.Time) / 100 * time.Duration(r.AtPercent)))
	}
	if r.Interval > 0 {
		first(s.Fulfilled.Add(time.Duration(r.Interval) * time.Second))
	}
	if r.Rotate > 0 {
		first(s.secretSince().Add(time.Duration(r.Rotate) * time.Second))
	}
	return at
}

// Begin counts an attempt and returns its number.
func (s *State) Begin(v Observed) int {
	if s.State == hostdir.NeedFulfilled {
		s.Attempts = 0
	}
	s.Attempts++
	s.Total++
	s.LastAttempt, s.Manifest = unixtime.Of(v.Now), v.Manifest
	return s.Attempts
}

// NewError is e as a state keeps it.
func NewError(e *hostapi.Error) *hostdir.NeedError {
	return &hostdir.NeedError{Kind: string(e.Kind), Code: e.Code, Message: e.Message}
}

// Fail records why an attempt failed and when the next one is. What one provider finds
// invalid another may answer, of a newer release for one: each
// receives the request before the need is invalid. A fault found by this host is final.
func (s *State) Fail(v Observed, provider string, e *hostapi.Error, b Backoff) {
	s.Provider = provider
	s.Error = NewError(e)
	s.Next, s.NotBefore = unixtime.Time{}, unixtime.Time{}
	if e.RetryAfter > 0 && provider != "" {
		s.NotBefore = unixtime.Of(v.Now).Add(after(e))
	}
	if e.Kind == hostapi.Invalid {
		s.InvalidInRow++
	} else {
		s.InvalidInRow = 0
	}
	switch {
	case s.InvalidInRow > 0 && (provider == "" || s.InvalidInRow >= len(v.Need.Providers)):
		s.setStatus(hostdir.NeedInvalid, v.Now)
		return
	case e.Kind == hostapi.Denied:
		s.setStatus(hostdir.NeedDenied, v.Now)
	default:
		s.setStatus(hostdir.NeedWaiting, v.Now)
	}
	s.Next = unixtime.Of(v.Now)
	if round, ends := s.round(v.Need.Providers); ends || e.Code != hostapi.CodeUnavailable.Name {
		s.Next = s.Next.Add(b.wait(round, e, provider))
	}
}

// round is which round of the providers, from 1, the last attempt was part of, and whether
// the round has ended: only then the need waits for one that cannot be reached.
func (s *State) round(providers []string) (number int, ends bool) {
	n := max(len(providers), 1)
	return (s.Attempts + n - 1) / n, s.Attempts%n == 0
}

// Fulfil records that what is delivered now answers the need. Renewal comes up to
// a twentieth earlier than declared, so that hosts do not renew together.
func (s *State) Fulfil(v Observed, provider string, answer hostapi.Answer) {
	s.noteRotation(v, answer)
	s.setStatus(hostdir.NeedFulfilled, v.Now)
	s.Answers++
	s.Provider, s.Error, s.InvalidInRow, s.NotBefore = provider, nil, 0, unixtime.Time{}
	s.Digest, s.Generation = v.Digest, v.Need.Generation
	s.Fulfilled, s.Expires, s.Next = unixtime.Of(v.Now.Truncate(time.Second)), unixtime.Unix(answer.Expires), unixtime.Time{}
	if at := s.exact(v.Need.Renew); !at.IsZero() {
		if early := at.Sub(s.Fulfilled.Time) / 20; early > 0 {
			at = at.Add(-rand.N(early))
		}
		s.Next = at
	}
}

// Block records that a need waits for others.
func (s *State) Block(now time.Time) {
	s.setStatus(hostdir.NeedBlocked, now)
	s.Next = unixtime.Time{}
}

// RequestRotation has the next attempts request another secret, once for each identity of
// such a request. What was never delivered has none to replace.
func (s *State) RequestRotation(identity int64) {
	if s.RotateRequest = identity; s.Digest != "" && s.WantRotation == 0 {
		s.WantRotation = s.Rotations + 1
	}
}

// Ordered reports whether a rotation that an operator ordered is to be requested: it is the
// next one, and none that a provider refused before.
func (s *State) Ordered(rotation int) bool {
	return s.Digest != "" && s.WantRotation == 0 && rotation == s.Rotations+1 && rotation > s.NotRotated
}

// RotateByAge does the same when the secret of a fulfilled need is as old as it may become,
// less the twentieth by which renewal comes early.
func (s *State) RotateByAge(r document.Renew, now time.Time) {
	age := time.Duration(r.Rotate) * time.Second
	if r.Rotate > 0 && s.State == hostdir.NeedFulfilled && s.WantRotation == 0 && now.Sub(s.secretSince().Time) >= age-age/20 {
		s.WantRotation = s.Rotations + 1
	}
}

// DropRotation gives up a rotation that a provider refused, until the secret is as old
// again. The need is requested as usual, since the secret in force may be another than the
// one that is delivered.
func (s *State) DropRotation(now time.Time) {
	s.NotRotated, s.WantRotation, s.Rotated = s.WantRotation, 0, unixtime.Of(now)
	s.restart(now)
}

// secretSince is since when the secret is in force.
func (s State) secretSince() unixtime.Time {
	if s.Rotated.IsZero() {
		return s.Fulfilled
	}
	return s.Rotated
}

// noteRotation records the rotation that an answer is of. Where nothing rotates, it leaves a
// state that releases before rotation read.
func (s *State) noteRotation(v Observed, answer hostapi.Answer) {
	number, _ := strconv.Atoi(answer.Values[hostapi.ValueRotation]) // without one there was none
	since := s.secretSince()
	if number+1 < s.NotRotated { // the provider counts anew: what it refused was no next one to it
		s.NotRotated = 0
	}
	if number != s.Rotations || s.Digest != v.Digest {
		since = unixtime.Of(v.Now.Truncate(time.Second))
	}
	s.Rotations, s.WantRotation, s.Rotated = max(number, 0), 0, unixtime.Time{}
	if s.Rotations > 0 || v.Need.Renew.Rotate > 0 {
		s.Rotated = since
	}
}

// Digest is over what makes a delivered need fulfilled.
func Digest(n document.Need) string {
	b, err := json.Marshal(struct {
		Deliver    document.Deliver `json:"deliver"`
		Generation int              `json:"generation"`
		Request    json.RawMessage  `json:"request"`
	}{n.Deliver, n.Generation, n.Request})
	if err == nil {
		b, err = hostapi.Canonical(b)
	}
	if err != nil {
		panic(fmt.Sprintf("need %s of a decoded manifest: %v", n.ID, err))
	}
	return document.Digest(b)
}
