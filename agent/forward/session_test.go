package forward_test

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/agent/forward"
	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/sessions"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// TestSessions checks that the connections to services over SSH, RDP and VNC are sessions in the
// status, that they end on the order of an operator and when the right or the person goes, and that
// the access log has the reason.
func TestSessions(t *testing.T) {
	for _, over := range []document.Remote{document.RemoteSSH, document.RemoteRDP, document.RemoteVNC} {
		t.Run(string(over), func(t *testing.T) { testSessions(t, over) })
	}
}

func testSessions(t *testing.T, over document.Remote) {
	var log lines
	c := newCluster(t, agenttest.Echo(t))
	c.Publish.Publish[0].AccessLog, c.Publish.Publish[0].Remote = document.AccessFull, over
	c.AcceptUrsula()
	runWith(t, forward.Config{Layout: c.Ursula.Layout, Socket: c.Ursula.Socket(), Access: &log, Poll: time.Hour})
	run(t, c.Laptop)
	c.running = true
	kit.Eventually(t, "laptop to run", func() bool { return report(t, c.Laptop).State == "running" })
	socket := status.Beside(c.Ursula.Socket(), "session")
	listed := func() []sessions.Session { return report(t, c.Ursula).Sessions }

	ended := func(wanted string, end func(sessions.Session, net.Conn)) telemetry.Access {
		t.Helper()
		had := len(log.entries(t))
		var conn net.Conn
		// The connection between the forwarders may still be the one that the end of a right closes.
		kit.Succeeds(t, "a connection to the service", func() (err error) {
			if conn, err = net.Dial("tcp", c.Local); err != nil {
				return err
			}
			t.Cleanup(func() { conn.Close() })
			conn.SetDeadline(time.Now().Add(kit.Patience))
			return agenttest.Ping(conn)
		})
		var s sessions.Session
		kit.Eventually(t, "a session with its bytes", func() bool {
			all := listed()
			if len(all) != 1 {
				t.Fatalf("%d sessions: %+v", len(all), all)
			}
			s = all[0]
			return s.Sent == 1 && s.Received == 1
		})
		if s.ID == "" || s.Service != outline || s.Protocol != over || s.Caller != alice || !strings.Contains(s.From, ":") || time.Since(s.Begun) > kit.Patience {
			t.Errorf("session %+v", s)
		}
		end(s, conn)
		kit.Eventually(t, "a line", func() bool { return len(log.entries(t)) == had+1 })
		e := log.entries(t)[had]
		if e.End != wanted || e.Session != s.ID || e.Sent != 1 || e.Received != 1 || !e.Begun.Equal(s.Begun) || e.Duration <= 0 {
			t.Errorf("access log %+v, want end %q", e, wanted)
		}
		if left := listed(); len(left) > 0 {
			t.Errorf("still open: %+v", left)
		}
		return e
	}
	cut := func(conn net.Conn) { t.Helper(); wantReset(t, conn) }

	if e := ended("done", func(_ sessions.Session, conn net.Conn) { conn.Close() }); e.By != "" {
		t.Errorf("ended by %q", e.By)
	}
	e := ended("ended-by-operator", func(s sessions.Session, conn net.Conn) {
		if err := status.EndSession(t.Context(), socket, "nothing", "user/bob"); !errors.Is(err, status.ErrNoSession) {
			t.Error(err)
		}
		for _, by := range []string{"", "a\nb", strings.Repeat("x", 1000)} {
			if err := status.EndSession(t.Context(), socket, s.ID, by); err == nil || errors.Is(err, status.ErrNoSession) {
				t.Errorf("by %q: %v", by, err)
			}
		}
		if err := status.EndSession(t.Context(), socket, s.ID, bob.String()); err != nil {
			t.Fatal(err)
		}
		cut(conn)
	})
	if e.By != bob.String() {
		t.Errorf("ended by %q", e.By)
	}

	c.Publish.Publish[0].AccessLog = document.AccessOff
	c.acceptUrsula(t)
	conn := dial(t, c.Local)
	if err := agenttest.Ping(conn); err != nil {
		t.Fatal(err)
	}
	had := len(log.entries(t))
	if err := status.EndSession(t.Context(), socket, listed()[0].ID, bob.String()); err != nil {
		t.Fatal(err)
	}
	cut(conn)
	kit.Eventually(t, "a line although the log is off", func() bool { return len(log.entries(t)) == had+1 })

	c.Publish.Publish[0].AccessLog = document.AccessFull
	c.acceptUrsula(t)
	ended("denied", func(_ sessions.Session, conn net.Conn) { // the right goes
		c.Publish.Publish[0].Allow = nil
		c.acceptUrsula(t)
		cut(conn)
	})
	until := time.Now().Add(5 * time.Second)
	c.Publish.Publish[0].Allow = []document.Allow{{ID: alice, Until: unixtime.Of(until)}}
	c.acceptUrsula(t)
	ended("denied", func(_ sessions.Session, conn net.Conn) { cut(conn) })
	c.Publish.Publish[0].Allow = []document.Allow{{ID: alice}}
	c.acceptUrsula(t)
	ended("denied", func(_ sessions.Session, conn net.Conn) { // the person goes
		kit.WriteRevocations(c.Ursula.Layout.Revocations(), kit.Revocations(2, kit.SigningKey("demo-1"), revocation.Target{ID: alice}))
		cut(conn)
	})
}

// TestOtherConnectionsAreNoSessions checks that a connection to another service is in no list of
// sessions.
func TestOtherConnectionsAreNoSessions(t *testing.T) {
	c := newCluster(t, agenttest.Echo(t))
	c.start(t)
	if err := agenttest.Ping(dial(t, c.Local)); err != nil {
		t.Fatal(err)
	}
	if all := report(t, c.Ursula).Sessions; len(all) > 0 {
		t.Errorf("%+v", all)
	}
}
