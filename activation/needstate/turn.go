package needstate

import (
	"math/rand/v2"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/api"
)

// View is what a state is judged against.
type View struct {
	Need     florete.Need
	Digest   string // of the need
	Manifest string // digest of the manifest in force
	Present  bool   // what Need.Deliver names is on disk
	Now      time.Time
}

// Settle fits a state, which may be of a former manifest or from before the clock
// was set back, to the present.
func (s *State) Settle(v View) {
	s.rewind(v.Now)
	changed := s.Manifest != v.Manifest
	switch {
	case s.State == "":
		s.become(Waiting, v.Now)
	case s.State == Fulfilled && (s.Digest != v.Digest || !v.Present):
		s.again(v.Now)
	case (s.State == Denied || s.State == Invalid) && changed:
		s.again(v.Now)
	}
	if !v.Present {
		s.Digest = ""
	}
}

// Restart lets a need be asked for at once when it was this host that stood in
// the way: no provider was asked, and what was wrong may be mended.
func (s *State) Restart(now time.Time) {
	if (s.State == Invalid || s.State == Denied) && s.Provider == "" {
		s.again(now)
	}
}

// Jump lets a need be asked for at once that waited for the clock to be right: it
// was just set.
func (s *State) Jump(now time.Time) {
	if s.State == Waiting && s.Error != nil && s.Error.Code == api.CodeClock {
		s.again(now)
	}
}

// again starts a new effort now.
func (s *State) again(now time.Time) {
	s.become(Waiting, now)
	s.Attempts, s.Next, s.Error, s.Invalids = 0, Time{}, nil, 0
}

// rewind keeps the waits as long as they were meant when the clock was set back
// behind what was recorded, and cuts those that no rule here has made.
func (s *State) rewind(now time.Time) {
	const rounding = time.Second // of what is on disk
	if back := s.Asked.Sub(now); back > rounding {
		s.Asked = At(now)
		if !s.Next.IsZero() {
			s.Next = s.Next.Add(-back)
		}
	}
	if back := s.Fulfilled.Sub(now); back > rounding {
		s.Fulfilled = At(now)
	}
	if s.Since.Sub(now) > rounding {
		s.Since = At(now)
	}
	if most := At(now).Add(longest); s.State != Fulfilled && s.Next.After(most.Time) {
		s.Next = most
	}
}

// Due is when the need is asked for next; false for never, or not until
// something changes.
func (s State) Due(r florete.Renew) (time.Time, bool) {
	switch s.State {
	case Invalid:
		return time.Time{}, false
	case Fulfilled:
		return s.renewal(r)
	}
	return s.Next.Time, true
}

// renewal is Next, which carries the jitter, unless the manifest now asks for an
// earlier one; never after what was issued has expired, nor sooner than a second.
func (s State) renewal(r florete.Renew) (time.Time, bool) {
	at := exact(s.Fulfilled, s.Expires, r)
	if at.IsZero() {
		return s.Expires.Time, !s.Expires.IsZero()
	}
	if !s.Next.IsZero() && s.Next.Before(at.Time) {
		at = s.Next
	}
	if !s.Expires.IsZero() && s.Expires.Before(at.Time) {
		at = s.Expires
	}
	if least := s.Fulfilled.Add(time.Second); at.Before(least.Time) {
		at = least
	}
	return at.Time, true
}

// exact is when renewal is due without jitter, zero for never.
func exact(fulfilled, expires Time, r florete.Renew) Time {
	var at Time
	if r.AtPercent > 0 && !expires.IsZero() {
		at = fulfilled.Add(expires.Sub(fulfilled.Time) / 100 * time.Duration(r.AtPercent))
	}
	if r.Interval > 0 {
		every := fulfilled.Add(time.Duration(r.Interval) * time.Second)
		if at.IsZero() || every.Before(at.Time) {
			at = every
		}
	}
	return at
}

// Begin counts an attempt and returns its number.
func (s *State) Begin(v View) int {
	if s.State == Fulfilled {
		s.Attempts = 0
	}
	s.Attempts++
	s.Total++
	s.Asked, s.Manifest = At(v.Now), v.Manifest
	return s.Attempts
}

// Fail records why an attempt failed and when the next one is. What one provider finds
// invalid another may answer, of a newer release for one: each is asked before that is
// the end of it. What this host finds so itself is.
func (s *State) Fail(v View, provider string, e *api.Error, b Backoff) {
	s.Provider = provider
	s.Error = &Error{e.Kind, e.Code, e.Message}
	s.Next = Time{}
	if e.Kind == api.Invalid {
		s.Invalids++
	} else {
		s.Invalids = 0
	}
	switch {
	case s.Invalids > 0 && (provider == "" || s.Invalids >= len(v.Need.Providers)):
		s.become(Invalid, v.Now)
		return
	case e.Kind == api.Denied:
		s.become(Denied, v.Now)
	default:
		s.become(Waiting, v.Now)
	}
	s.Next = At(v.Now).Add(b.Wait(s.Attempts, e))
}

// Fulfil records that what is delivered now answers the need. Renewal comes up to
// a twentieth earlier than asked for, so that hosts do not renew together.
func (s *State) Fulfil(v View, provider string, expires int64) {
	s.become(Fulfilled, v.Now)
	s.Answers++
	s.Provider, s.Error, s.Invalids = provider, nil, 0
	s.Digest, s.Generation = v.Digest, v.Need.Generation
	s.Fulfilled, s.Expires, s.Next = At(v.Now.Truncate(time.Second)), Unix(expires), Time{}
	if at := exact(s.Fulfilled, s.Expires, v.Need.Renew); !at.IsZero() {
		if early := at.Sub(s.Fulfilled.Time) / 20; early > 0 {
			at = at.Add(-rand.N(early))
		}
		s.Next = at
	}
}

// Block records that a need waits for others.
func (s *State) Block(now time.Time) {
	s.become(Blocked, now)
	s.Next = Time{}
}
