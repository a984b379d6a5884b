package forward_test

import (
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// runChild runs the agent of a host in a process of its own, which a test can suspend.
func runChild(t *testing.T, h *agenttest.Host) *os.Process {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), agentEnv+"="+string(h.Layout))
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	kit.Eventually(t, h.Name+" to run", func() bool { return report(t, h).State == "running" })
	return cmd.Process
}

// anotherRelay adds a second relay to a cluster that has one, and returns its host, whose agent is
// not started.
func (c *cluster) anotherRelay(t *testing.T) *agenttest.Host {
	t.Helper()
	doc, err := c.Relays[0].Layout.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	f := doc.Manifest().Forwarder
	second := agenttest.NewHost(t, "second", c.CA)
	vertex, at := kit.ID("vertex/second"), agenttest.Loopback().String()
	f.Listen, f.Relay = []string{at}, &document.Relaying{ID: vertex, Routes: f.Relay.Routes}
	second.Accept(f, vertex)
	for _, id := range []spiffe.ID{kit.ID("node/second"), vertex} {
		second.Deliver(c.CA, id, time.Hour)
	}
	for _, f := range []*document.Forwarder{&c.Publish, &c.Reach} {
		f.Relays["second"] = document.Relay{ID: vertex, Addresses: document.Addresses{at}}
	}
	c.Publish.Uplinks = append(c.Publish.Uplinks, "second")
	via := &c.Reach.Reach[0].Via
	*via = append(*via, document.Via{By: []string{"second"}, Label: (*via)[0].Label})
	c.AcceptUrsula()
	c.AcceptLaptop()
	return second
}

// wantUplinks waits until Ursula has a number of uplinks.
func (c *cluster) wantUplinks(t *testing.T, n int) {
	t.Helper()
	kit.Eventually(t, "the uplinks", func() bool {
		connected := 0
		for _, u := range report(t, c.Ursula).Uplinks {
			if u.Transport != document.AnyTransport {
				connected++
			}
		}
		return connected == n
	})
}

// TestWaitingForASilentRelay checks that a stream that waits for an answer through a relay leaves it
// when the relay falls silent. The stream is served through the other relay, on the only connection
// of the program, which has sent nothing yet.
func TestWaitingForASilentRelay(t *testing.T) {
	throughRelays(t, 1)
	c := &cluster{Cluster: agenttest.NewCluster(t, agenttest.Upstream(t, func(c *net.TCPConn) { _, _ = c.Write([]byte("hello")) }))}
	hosts := []*agenttest.Host{c.Relays[0], c.anotherRelay(t)}
	relays := []*os.Process{runChild(t, hosts[0]), runChild(t, hosts[1])}
	c.start(t)
	c.wantUplinks(t, 2)
	greeted := func() error {
		conn := dial(t, c.Local)
		defer conn.Close()
		_, err := io.ReadFull(conn, make([]byte, len("hello")))
		return err
	}
	if err := greeted(); err != nil {
		t.Fatal(err)
	}
	used := report(t, c.Laptop).RelayedTo
	if len(used) != 1 {
		t.Fatalf("paths in use: %+v, want one", used)
	}
	relay := relays[slices.IndexFunc(hosts, func(h *agenttest.Host) bool { return used[0].Path == "by "+h.Name })]
	if err := relay.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := greeted(); err != nil {
		t.Errorf("%v after %s, want an answer through the other relay", err, time.Since(began))
	}
	t.Logf("answered after %s", time.Since(began))
}
