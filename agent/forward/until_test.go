package forward_test

import (
	"net"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/tests/kit/agenttest"
)

// TestAllowUntil checks that access for a limited time ends at its hour, for open connections too,
// without a new manifest.
func TestAllowUntil(t *testing.T) {
	t.Parallel()
	c := newCluster(t, agenttest.Echo(t))
	c.Publish.Publish[0].Allow = []document.Allow{{ID: alice}, {ID: bob}}
	c.acceptUrsula(t)
	c.start(t)
	asAlice, asBob := dial(t, c.Local), c.dialAsBob(t)
	for _, conn := range []net.Conn{asAlice, asBob} {
		if err := agenttest.Ping(conn); err != nil {
			t.Fatal(err)
		}
	}
	end := time.Now().Add(3 * time.Second).Truncate(time.Second)
	c.Publish.Publish[0].Allow[1].Until = unixtime.Of(end)
	c.acceptUrsula(t)
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

func (c *cluster) dialAsBob(t *testing.T) net.Conn {
	t.Helper()
	conn, code := socksDial(t, c.SOCKS[bob], "outline.demo.flor.rete", c.port(t))
	if code != 0 {
		t.Fatalf("SOCKS5 as bob: reply %d", code)
	}
	return conn
}

// TestLostLogin checks that the connections of a caller end when the caller loses a login at a
// service, by a new manifest or by the hour, and that the caller may connect again.
func TestLostLogin(t *testing.T) {
	t.Parallel()
	c := newCluster(t, agenttest.Echo(t))
	may := func(logins ...document.Login) {
		c.Publish.Publish[0].Allow = []document.Allow{{ID: alice, Logins: []document.Login{{Account: "deploy"}}}, {ID: bob, Logins: logins}}
		c.acceptUrsula(t)
	}
	may(document.Login{Account: "deploy"})
	c.start(t)
	asAlice := dial(t, c.Local)
	ping := func(conns ...net.Conn) {
		t.Helper()
		for _, conn := range conns {
			if err := agenttest.Ping(conn); err != nil {
				t.Fatal(err)
			}
		}
	}
	asBob := c.dialAsBob(t)
	ping(asAlice, asBob)
	end := time.Now().Add(4 * time.Second).Truncate(time.Second)
	may(document.Login{Account: "deploy"}, document.Login{Account: "root", Until: unixtime.Of(end)})
	ping(asAlice)
	if agenttest.Ping(asBob) == nil { // as long as the new login lasts
		wantReset(t, asBob)
	}
	if now := time.Now(); now.Before(end) {
		t.Errorf("reset %s early", end.Sub(now))
	}
	asBob = c.dialAsBob(t)
	ping(asAlice, asBob)
	may()
	wantReset(t, asBob)
	asBob = c.dialAsBob(t)
	ping(asAlice, asBob)
	may()
	ping(asAlice, asBob)
}
