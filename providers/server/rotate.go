package server

import (
	"context"
	"time"

	"github.com/florete/florete/internal/hostapi"
)

// rotationRest is the shortest time between two rotations of a secret.
const rotationRest = 10 * time.Minute

// Rotation is how often the secret of a need was replaced because its host requested it,
// and when last. It only grows, so that no former secret ever comes back.
type Rotation struct {
	Number int       `json:"number"`
	Since  time.Time `json:"since"`
}

// skew is how far apart the clocks of provider hosts may be.
const skew = time.Minute

// Within reports whether the rotation was made within a time before now. One that is later than
// now was made by a clock that was ahead, and when that was is not known: it is not.
func (r Rotation) Within(d time.Duration, now time.Time) bool {
	ago := now.Sub(r.Since)
	return ago > -skew && ago < d
}

// Rotator is a Kind whose answers hold a secret that the host may have replaced.
type Rotator[P any] interface {
	Kind[P]

	// Rotation is of the secret in force that a call is for, the zero Rotation before the
	// first. Answer answers with the secret of Call.Rotation, and its Decision has that
	// remembered.
	Rotation(ctx context.Context, p P, c Call) (Rotation, error)
}

// rotate is the rotation whose secret answers a call: that in force, or the next one where
// the host requests it. A request names the rotation that it makes, so that it makes one
// however often it is sent, and none when it comes late.
func (f *compiledPolicy) rotate(ctx context.Context, kind string, c Call) (Rotation, error) {
	want := c.Request.Rotation
	if f.compiled.rotation == nil {
		if want == 0 {
			return Rotation{}, nil
		}
		return Rotation{}, hostapi.Errorf(hostapi.CodeRotation, "need %q: kind %q has no secret to rotate: raise its generation, or fetch it again", c.Request.Need, kind)
	}
	now, err := f.compiled.rotation(ctx, c)
	switch {
	case err != nil, want == 0, want == now.Number:
		return now, err
	case want != now.Number+1:
		return Rotation{}, hostapi.Errorf(hostapi.CodeRotation, "need %q: rotation %d requested, rotation %d is in force: fetch it again, then rotate", c.Request.Need, want, now.Number)
	}
	if now.Within(rotationRest, c.Now) {
		rest := now.Since.Add(rotationRest).Sub(c.Now)
		return Rotation{}, hostapi.Errorf(hostapi.CodeBusy, "need %q: rotated at %s, want %s between two rotations",
			c.Request.Need, now.Since.UTC().Format(time.RFC3339), rotationRest).After(min(rest, rotationRest))
	}
	return Rotation{want, c.Now}, nil
}
