package server_test

import (
	"testing"
	"time"

	"github.com/florete/florete/providers/server"
)

// TestRotationWithin checks that a rotation by a clock that was ahead neither blocks the next
// rotation nor keeps the former secret valid. Clocks of replicas may differ slightly.
func TestRotationWithin(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		ago  time.Duration
		want bool
	}{
		{0, true}, {9 * time.Minute, true}, {11 * time.Minute, false}, {-30 * time.Second, true},
		{-2 * time.Minute, false}, {-6 * time.Hour, false},
	} {
		if got := (server.Rotation{Number: 1, Since: now.Add(-c.ago)}).Within(10*time.Minute, now); got != c.want {
			t.Errorf("%s ago: got %t", c.ago, got)
		}
	}
}
