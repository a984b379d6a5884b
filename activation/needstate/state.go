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

// State is the recorded state of a need. Its methods change it from one state to the next. Only
// activation changes states.
type State struct{ hostdir.NeedState }

// Save writes the state of the need with the given ID to its file in the state directory.
// Layout.NeedState reads the file.
func (s State) Save(l hostdir.Layout, need string) error {
	b, err := json.Marshal(s.NeedState)
	if err != nil {
		return err
	}
	return atomicfile.FileIn(l.NeedStateFile(need), append(b, '\n'), 0o644)
}

// setStatus changes the status and records since when the need has it.
func (s *State) setStatus(status hostdir.NeedStatus, now time.Time) {
	if s.State != status {
		s.State, s.StateSince = status, unixtime.Of(now)
	}
}

// Observed contains the facts about a need that hold at the moment, such as whether its files
// exist. The methods of State decide by these facts.
type Observed struct {
	Need     document.Need
	Digest   string // digest of the need
	Manifest string // digest of the manifest in force
	Present  bool   // all files in Need.Deliver exist
	Foreign  bool   // no root of the manifest signed the certificate
	Now      time.Time
}

// Reconcile adapts a recorded state to the present facts. The state may have been recorded under an
// earlier manifest, or before the wall clock was set back. For example, a fulfilled need whose
// files are missing becomes due.
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
		// The need may have waited for another address or another root.
		s.hurry()
	}
	if !v.Present {
		s.Digest = ""
	}
	if s.State == hostdir.NeedFulfilled && s.exact(v.Need.Renew).IsZero() && s.Next.After(v.Now) {
		s.Next = unixtime.Time{} // the time was set under an earlier manifest
	}
}

// RetryLocal makes a need due at once if this host itself refused to send its request, because the
// reason may be gone.
func (s *State) RetryLocal(now time.Time) {
	if (s.State == hostdir.NeedInvalid || s.State == hostdir.NeedDenied) && s.Provider == "" {
		s.restart(now)
	}
}

// KeyChanged makes a need due at once. It is called for a need that could not be requested with the
// host's key, when that key has changed.
func (s *State) KeyChanged(now time.Time) { s.restart(now) }

// Resumed makes a need due at once if it waits or was refused. It is called when an operator has
// restarted activation, because the operator may have removed the cause. A wait that the provider
// has demanded is kept.
func (s *State) Resumed(now time.Time) {
	switch s.State {
	case hostdir.NeedDenied, hostdir.NeedInvalid:
		s.restart(now)
	case hostdir.NeedWaiting:
		s.hurry()
	}
}

// ClockChanged makes a need due at once if its last attempt failed because the wall clock was
// wrong.
func (s *State) ClockChanged(now time.Time) {
	if s.State == hostdir.NeedWaiting && s.Error != nil && s.Error.Code == hostapi.CodeClock.Name {
		s.restart(now)
	}
}

// Reinstated makes a need due at once if it was denied because this host was revoked, and reports
// whether it was.
func (s *State) Reinstated(now time.Time) bool {
	was := s.State == hostdir.NeedDenied && s.Error != nil && s.Error.Code == hostapi.CodeRevoked.Name
	if was {
		s.restart(now)
	}
	return was
}

// Renew makes a fulfilled need due for renewal at the given time. It does nothing if the renewal is
// due earlier.
func (s *State) Renew(at time.Time) {
	if s.State == hostdir.NeedFulfilled && (s.Next.IsZero() || at.Before(s.Next.Time)) {
		s.Next = unixtime.Of(at)
	}
}

// restart makes the need due now, and counts its attempts from the beginning.
func (s *State) restart(now time.Time) {
	s.setStatus(hostdir.NeedWaiting, now)
	s.Error, s.InvalidInRow = nil, 0
	s.hurry()
}

// hurry makes the need due as early as the provider permits, and counts its attempts from the
// beginning.
func (s *State) hurry() { s.Attempts, s.Next = 0, s.NotBefore }

// rewind repairs recorded times that lie in the future. If the clock was set back, waits keep their
// length. A wait that is longer than this package ever chooses is shortened. The times of a running
// attempt must be repaired before its end is recorded, so that a newly planned wait is not taken for
// one from before.
func (s *State) rewind(now time.Time) {
	const rounding = time.Second // rounding of times on disk
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

// Due returns the time of the next request for the need. It returns false if no request is planned,
// for example because the need is invalid.
func (s State) Due(r document.Renew) (time.Time, bool) {
	switch s.State {
	case hostdir.NeedInvalid:
		return time.Time{}, false
	case hostdir.NeedFulfilled:
		return s.renewal(r)
	}
	return s.Next.Time, true
}

// renewal returns the time of the next renewal. This is the recorded time, which includes jitter,
// unless the manifest now requires an earlier one. The result is never later than the expiry, and
// at least a second after the need was fulfilled.
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

// exact returns the time of the renewal without jitter, or zero if the need is never renewed.
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

// Begin counts an attempt to fulfil the need, and returns the number of the attempt since the need
// was last fulfilled. The first attempt has the number 1.
func (s *State) Begin(v Observed) int {
	if s.State == hostdir.NeedFulfilled {
		s.Attempts = 0
	}
	s.Attempts++
	s.Total++
	s.LastAttempt, s.Manifest = unixtime.Of(v.Now), v.Manifest
	return s.Attempts
}

// NewError converts an error to the form that is stored in the state of a need.
func NewError(e *hostapi.Error) *hostdir.NeedError {
	return &hostdir.NeedError{Kind: string(e.Kind), Code: e.Code, Message: e.Message}
}

// Fail records a failed attempt and plans the next one. The provider is empty if this host itself
// failed. A need whose request is invalid is sent to the other providers too, because these may run
// a newer release. If all providers or this host itself consider it invalid, the need becomes
// invalid and no attempt is planned.
func (s *State) Fail(v Observed, provider string, e *hostapi.Error, b Backoff) {
	s.rewind(v.Now)
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

// round tells how often all providers of a need have been tried. A round consists of one attempt at
// each provider. The result is the number of the current round, which begins at 1, and whether the
// last attempt was the end of the round. A need whose providers are unreachable waits only at the
// end of a round.
func (s *State) round(providers []string) (number int, ends bool) {
	n := max(len(providers), 1)
	return (s.Attempts + n - 1) / n, s.Attempts%n == 0
}

// Fulfil records that the delivered files fulfil the need, and plans the renewal. The renewal is
// moved to an earlier time at random, by up to a twentieth of the wait, so that hosts do not all
// renew at the same time.
func (s *State) Fulfil(v Observed, provider string, answer hostapi.Answer) {
	s.rewind(v.Now)
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

// Block records that the need must wait until other needs are fulfilled.
func (s *State) Block(now time.Time) {
	s.setStatus(hostdir.NeedBlocked, now)
	s.Next = unixtime.Time{}
}

// RequestRotation makes the next attempt ask for a new secret, because a person requested one. The
// request is identified by the number that Table.Requested has returned for it, so that it counts
// only once. A need that was never delivered has no secret to replace.
func (s *State) RequestRotation(identity int64) {
	if s.RotateRequest = identity; s.Digest != "" && s.WantRotation == 0 {
		s.WantRotation = s.Rotations + 1
	}
}

// Ordered reports whether the host must ask for a new secret because an operator has ordered the
// rotation with the given number. It returns false if that rotation is not the next one, or if a
// provider has already refused it.
func (s *State) Ordered(rotation int) bool {
	return s.Digest != "" && s.WantRotation == 0 && rotation == s.Rotations+1 && rotation > s.NotRotated
}

// RotateByAge makes the next attempt ask for a new secret if at most a twentieth of the current
// secret's maximum age is left.
func (s *State) RotateByAge(r document.Renew, now time.Time) {
	age := time.Duration(r.Rotate) * time.Second
	if r.Rotate > 0 && s.State == hostdir.NeedFulfilled && s.WantRotation == 0 && now.Sub(s.secretSince().Time) >= age-age/20 {
		s.WantRotation = s.Rotations + 1
	}
}

// DropRotation gives up the replacement of a secret after the provider has refused it. The need is
// due at once, but without a replacement, because the provider's secret may differ from the
// delivered one. The next replacement is due when the secret reaches its maximum age again.
func (s *State) DropRotation(now time.Time) {
	s.NotRotated, s.WantRotation, s.Rotated = s.WantRotation, 0, unixtime.Of(now)
	s.restart(now)
}

// secretSince returns the time at which the current secret came into use.
func (s State) secretSince() unixtime.Time {
	if s.Rotated.IsZero() {
		return s.Fulfilled
	}
	return s.Rotated
}

// noteRotation records the number of the rotation in an answer. Without any rotation, the state
// remains readable for releases that do not support rotations.
func (s *State) noteRotation(v Observed, answer hostapi.Answer) {
	number, _ := strconv.Atoi(answer.Values[hostapi.ValueRotation]) // zero if there was no rotation
	since := s.secretSince()
	if number+1 < s.NotRotated { // the provider counts anew, so that the refused number no longer applies
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

// Digest returns a digest of those parts of a need that determine its files. If it differs from the
// recorded digest, the delivered files no longer fulfil the need.
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
