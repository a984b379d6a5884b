package forward_test

import (
	"slices"
	"testing"
	"time"

	"github.com/florete/florete/tests/kit/agenttest"
)

// leaveBound is the time within which streams must leave a path on which nothing passes any more. It
// is less than the 15 seconds after which QUIC gives up a connection.
const leaveBound = 12 * time.Second

// TestTargetMoves checks that callers with a direct connection find a target that has moved into
// another network: new streams soon use a relay, and then a new direct connection. A stream from
// before the move ends with an error.
func TestTargetMoves(t *testing.T) {
	n := newNatted(t, "")
	n.startAll(t)
	n.wantDirect(t)
	before := n.used(t)
	open := n.dial(t)
	if err := agenttest.Ping(open); err != nil {
		t.Fatal(err)
	}
	n.moveTarget()
	began := time.Now()
	ended := make(chan time.Duration, 1)
	go func() {
		_, _ = open.Read(make([]byte, 1))
		ended <- time.Since(began)
	}()
	for !n.reaches(t) && time.Since(began) <= leaveBound {
		// A stream that was opened before the silence was noticed may be reset.
	}
	if took := time.Since(began); took > leaveBound {
		t.Errorf("reached after %s, want at most %s", took, leaveBound)
	}
	t.Logf("reached after %s by %v", time.Since(began), n.used(t))
	n.wantDirect(t)
	if took := time.Since(began); took > punchRetry/2 {
		t.Errorf("direct after %s, want much less than %s", took, punchRetry)
	}
	if now := n.used(t); slices.Equal(now, before) {
		t.Errorf("new streams use %v as before the move", now)
	}
	took := <-ended
	t.Logf("the open stream ended after %s", took)
	if took > 2*leaveBound {
		t.Errorf("the open stream ended after %s, want at most %s", took, 2*leaveBound)
	}
}
