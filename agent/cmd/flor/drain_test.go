package main

import (
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	agentstatus "github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// upgraded returns a cluster with an open connection. Since the connection was opened, the
// forwarder processes at both ends were replaced by newer ones, and the older processes drain.
func upgraded(t *testing.T, prepare func(*agenttest.Cluster)) (c *agenttest.Cluster, ursula, laptop *service, open net.Conn) {
	t.Helper()
	c = agenttest.NewCluster(t, agenttest.Echo(t))
	prepare(c)
	ursula, laptop = newService(t, c.Ursula), newService(t, c.Laptop)
	ursula.start()
	laptop.start()
	open, err := net.Dial("tcp", c.Local)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { open.Close() })
	open.SetDeadline(time.Now().Add(kit.Patience))
	for _, s := range []*service{ursula, laptop} {
		if err := agenttest.Ping(open); err != nil {
			t.Fatalf("before the upgrade of %s: %v", s.host.Name, err)
		}
		s.reload()
	}
	if err := agenttest.Ping(open); err != nil {
		t.Fatalf("after both: %v", err)
	}
	return c, ursula, laptop, open
}

func draining(t *testing.T, h *agenttest.Host) []agentstatus.Draining {
	t.Helper()
	r, _, err := agentstatus.Fetch(t.Context(), h.Socket())
	if err != nil {
		t.Fatal(err)
	}
	return r.Draining
}

// wantCut checks that an idle connection is reset by its forwarder.
func wantCut(t *testing.T, c net.Conn) {
	t.Helper()
	c.SetDeadline(time.Now().Add(kit.Patience))
	if n, err := c.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
		t.Errorf("%d bytes, %v, want a reset", n, err)
	}
}

// TestDenied checks that a new allow list also applies in older processes: they end the connections
// that it denies.
func TestDenied(t *testing.T) {
	c, ursula, laptop, open := upgraded(t, func(*agenttest.Cluster) {})
	for _, s := range []*service{ursula, laptop} {
		kit.Eventually(t, s.host.Name+" to show what its older process carries", func() bool {
			d := draining(t, s.host)
			return len(d) == 1 && d[0].Process == s.cmd.Process.Pid && d[0].Connections == 1
		})
	}
	c.Publish.Publish[0].Allow = []document.Allow{{ID: agenttest.Bob}}
	c.AcceptUrsula()
	wantCut(t, open)
}

// TestSessionOfOlderProcess checks that the sessions which an older process carries are in the
// status, and end on the order of an operator.
func TestSessionOfOlderProcess(t *testing.T) {
	_, ursula, _, open := upgraded(t, func(c *agenttest.Cluster) {
		c.Publish.Publish[0].Remote = document.RemoteRDP
		c.AcceptUrsula()
	})
	r, _, err := agentstatus.Fetch(t.Context(), ursula.host.Socket())
	if err != nil || len(r.Sessions) != 1 || len(r.Draining) != 1 {
		t.Fatalf("%+v, %+v, %v", r.Sessions, r.Draining, err)
	}
	if err := agentstatus.EndSession(t.Context(), agentstatus.Beside(ursula.host.Socket(), "session"), r.Sessions[0].ID, "user/bob"); err != nil {
		t.Fatal(err)
	}
	wantCut(t, open)
}

// TestDrainTime checks that an older process cuts the connections that are still open at the end of
// the drain time. The caller's next connection must be served.
func TestDrainTime(t *testing.T) {
	c, ursula, _, open := upgraded(t, func(c *agenttest.Cluster) {
		c.Publish.Drain = 1
		c.AcceptUrsula()
	})
	wantCut(t, open)
	kit.Eventually(t, "the older process to end", func() bool { return ursula.older() == 0 })
	if d := draining(t, c.Ursula); len(d) > 0 {
		t.Errorf("%d processes drain", len(d))
	}
	if err := exchange(c.Local); err != nil {
		t.Error(err)
	}
}

// TestOlderKilled checks that callers learn promptly when an older process is killed. The newest
// process resets their connections.
func TestOlderKilled(t *testing.T) {
	c, ursula, _, open := upgraded(t, func(*agenttest.Cluster) {})
	if err := ursula.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	open.SetDeadline(time.Now().Add(10 * time.Second)) // QUIC's idle timeout is 15 seconds
	_, _ = open.Write(make([]byte, 100))               // a short packet could be a reset itself and gets no answer
	if _, err := open.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
		t.Errorf("got %v, want a reset", err)
	}
	if err := exchange(c.Local); err != nil {
		t.Error(err)
	}
}

// TestBadRelease checks that an upgrade changes nothing if the new process cannot serve, or is
// killed before it serves.
func TestBadRelease(t *testing.T) {
	c := agenttest.NewCluster(t, agenttest.Echo(t))
	ursula, laptop := newService(t, c.Ursula), newService(t, c.Laptop)
	ursula.start()
	laptop.start()
	open, err := net.Dial("tcp", c.Local)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	open.SetDeadline(time.Now().Add(kit.Patience))
	before := ursula.main
	for what, start := range map[string]func() error{
		"no state": func() error {
			cmd := ursula.reloadCommand()
			cmd.Args[4] = t.TempDir()
			return cmd.Run()
		},
		"killed": func() error {
			cmd := ursula.reloadCommand()
			if err := cmd.Start(); err != nil {
				return err
			}
			cmd.Process.Signal(syscall.SIGKILL)
			return cmd.Wait()
		},
	} {
		if err := start(); err == nil {
			t.Errorf("%s: no error", what)
		}
		if ursula.main != before {
			t.Errorf("%s: the main process is another", what)
		}
		if err := agenttest.Ping(open); err != nil {
			t.Errorf("%s: an open connection: %v", what, err)
		}
		if err := exchange(c.Local); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	ursula.reload()
	if err := agenttest.Ping(open); err != nil {
		t.Error(err)
	}
}
