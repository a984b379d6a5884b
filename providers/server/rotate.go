package server

import (
	"context"
	"time"

	"github.com/florete/florete/internal/hostapi"
)

// rotationRest is the shortest time between two rotations of a secret.
const rotationRest = 10 * time.Minute

// Rotation counts how often a host has replaced the secret of a need, and tells when it last did.
// Number never decreases, so a former secret never becomes valid again.
type Rotation struct {
	Number int       `json:"number"`
	Since  time.Time `json:"since"`
}

// skew is the largest expected difference between the clocks of provider hosts.
const skew = time.Minute

// Within reports whether the rotation was made less than the duration d before the time now. If the
// rotation appears to lie more than a minute in the future, Within returns false: the clock was
// wrong when the rotation was made, so its time is unknown.
func (r Rotation) Within(d time.Duration, now time.Time) bool {
	ago := now.Sub(r.Since)
	return ago > -skew && ago < d
}

// Rotator is an optional interface of a Kind whose answers contain a secret that hosts can ask to
// replace.
type Rotator[P any] interface {
	Kind[P]

	// Rotation returns the rotation that made the secret in force for a call. Before the first
	// rotation, it returns zero. Answer returns the secret of Call.Rotation, and its Decision
	// stores that rotation.
	Rotation(ctx context.Context, p P, c Call) (Rotation, error)
}

// rotate returns the rotation whose secret answers a call. It is the rotation in force, or the next
// rotation if the host requests it. A request contains the number of its rotation. Therefore a
// repeated request makes no further rotation, and a late request makes none.
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
