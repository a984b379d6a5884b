package forward_test

import (
	"net"
	"testing"
	"time"

	"github.com/florete/florete/agent/agenttest"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/unixtime"
)

// TestAllowUntil checks that access for a limited time ends at its hour, for open connections too,
// without a new manifest.
func TestAllowUntil(t *testing.T) {
	t.Parallel()
	c := newCluster(t, agenttest.Echo(t))
	end := time.Now().Add(3 * time.Second).Truncate(time.Second)
	c.Publish.Publish[0].Allow = []document.Allow{{ID: alice}, {ID: bob, Until: unixtime.Of(end)}}
	c.acceptUrsula(t)
	c.start(t)
	asAlice := dial(t, c.Local)
	asBob, code := socksDial(t, c.SOCKS[bob], "outline.demo.flor.rete", c.port(t))
	if code != 0 {
		t.Fatalf("SOCKS5 as bob: reply %d", code)
	}
	for _, conn := range []net.Conn{asAlice, asBob} {
		if err := agenttest.Ping(conn); err != nil {
			t.Fatal(err)
		}
	}
	wantReset(t, asBob)
	if now := time.Now(); now.Before(end) {
		t.Errorf("reset %s early", end.Sub(now))
	}
	if err := agenttest.Ping(asAlice); err != nil {
		t.Fatalf("alice, who is allowed for good: %v", err)
	}
	refusals(t, c.Ursula, "denied", 1)
	again, code := socksDial(t, c.SOCKS[bob], "outline.demo.flor.rete", c.port(t))
	if code == 0 {
		wantReset(t, again)
	}
}
