package needstate

import (
	"strconv"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/unixtime"
)

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
