package forward_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/agent/forward"
	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

func TestMain(m *testing.M) {
	if state := os.Getenv(agentEnv); state != "" {
		runAgent(state)
	}
	if dir := os.Getenv(confineEnv); dir != "" {
		actConfined(dir)
	}
	agenttest.Main(m)
}

// TestUIDs checks that the user of a process decides, and that root is no exception.
func TestUIDs(t *testing.T) {
	agenttest.Root(t, "can start a process of another user")
	const alicesUID, nobodysUID = 64998, 64999
	c := newCluster(t, agenttest.Echo(t))
	c.Reach.Callers = []document.Caller{{ID: alice, UIDs: []uint32{alicesUID}}}
	c.acceptLaptop(t)
	c.start(t)
	if err := agenttest.DialAs(t, alicesUID, c.Local); err != nil {
		t.Errorf("alice: %v", err)
	}
	if err := agenttest.DialAs(t, nobodysUID, c.Local); err == nil || !strings.Contains(err.Error(), "reset") {
		t.Errorf("nobody: %v, want a reset", err)
	}
	wantRefused(t, c.Local)
	wantRefused(t, c.SOCKS[alice])
	for _, uid := range []uint32{nobodysUID, 0} {
		if !refused(t, c.Laptop, "unknown-caller", uid) {
			t.Errorf("uid %d is not among the refusals", uid)
		}
	}
}

// TestUnits checks that the system unit of a process decides if it is among the callers, and that a
// user unit of the same name does not count.
func TestUnits(t *testing.T) {
	const unit = "florete-test-forward.service"
	system := agenttest.Cgroup(t, "/system.slice/"+unit)
	user := agenttest.Cgroup(t, "/user.slice/user-0.slice/user@0.service/app.slice/"+unit)
	c := newCluster(t, agenttest.Echo(t))
	c.Reach.Callers = []document.Caller{{ID: alice, Units: []string{unit}}}
	c.acceptLaptop(t)
	c.start(t)
	if err := agenttest.DialIn(t, system, c.Local); err != nil {
		t.Errorf("the unit: %v", err)
	}
	if err := agenttest.DialIn(t, user, c.Local); err == nil || !strings.Contains(err.Error(), "reset") {
		t.Errorf("a unit of a user: %v, want a reset", err)
	}
	wantRefused(t, c.Local)
	if !refused(t, c.Laptop, "unknown-caller", 0) {
		t.Error("uid 0 is not among the refusals")
	}
}

func TestWaitsForManifestAndIdentity(t *testing.T) {
	c := newCluster(t, agenttest.Echo(t))
	empty := agenttest.NewHost(t, "laptop", c.CA)
	run(t, empty)
	run(t, c.Ursula)
	kit.Eventually(t, "the agent to report what it waits for", func() bool {
		p := report(t, empty).Problems
		return len(p) == 1 && strings.Contains(p[0], "no manifest accepted yet")
	})
	c.Laptop = empty
	c.acceptLaptop(t)
	kit.Eventually(t, "the manifest", func() bool { return report(t, empty).Host == "laptop" })
	if s := report(t, empty).State; s != "waiting" {
		t.Errorf("state %q before the node has an identity", s)
	}
	empty.Deliver(c.CA, laptop, time.Hour)
	kit.Eventually(t, "the agent to run", func() bool { return report(t, empty).State == "running" })
	wantRefused(t, c.Local)
	refusals(t, empty, "no-identity", 1)
	empty.Deliver(c.CA, alice, time.Hour)
	kit.Eventually(t, "alice to reach outline", func() bool { return reaches(c.Local) })
}

// TestStateDirectoryComesLater checks that the agent watches for a state directory that does not
// exist yet.
func TestStateDirectoryComesLater(t *testing.T) {
	c := newCluster(t, agenttest.Echo(t))
	there := string(c.Laptop.Layout)
	c.Laptop.Layout = hostdir.Layout(filepath.Join(t.TempDir(), "later"))
	socket := filepath.Join(t.TempDir(), "socket")
	runWith(t, forward.Config{Layout: c.Laptop.Layout, Socket: socket, Poll: time.Hour})
	run(t, c.Ursula)
	looksInVain(t, socket)
	if err := os.Rename(there, string(c.Laptop.Layout)); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "alice to reach outline", func() bool { return reaches(c.Local) })
}

// looksInVain waits until the agent at socket reports that it has no manifest.
func looksInVain(t *testing.T, socket string) {
	t.Helper()
	kit.Eventually(t, "the agent to look in vain", func() bool {
		r, _, err := status.Fetch(t.Context(), socket)
		return err == nil && len(r.Problems) > 0
	})
}

// TestPolls checks that the agent polls if a symlink above the state directory changes, since its
// target is not watched.
func TestPolls(t *testing.T) {
	c := newCluster(t, agenttest.Echo(t))
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "socket")
	runWith(t, forward.Config{Layout: hostdir.Layout(link), Socket: socket, Poll: 20 * time.Millisecond})
	run(t, c.Ursula)
	looksInVain(t, socket)
	if err := os.Symlink(string(c.Laptop.Layout), link+".next"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(link+".next", link); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "alice to reach outline", func() bool { return reaches(c.Local) })
}

// TestBadManifest checks that an unreadable manifest changes nothing.
func TestBadManifest(t *testing.T) {
	c := newCluster(t, agenttest.Echo(t))
	c.start(t)
	conn := dial(t, c.Local)
	if err := agenttest.Ping(conn); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(hostdir.Current(c.Laptop.Layout.Documents()), "manifest.json")
	if err := os.WriteFile(path, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	// Something else changes, so that the agent looks.
	c.Laptop.Deliver(c.CA, bob, time.Hour)
	if err := os.Mkdir(filepath.Join(c.Laptop.Layout.Documents(), "gen-new"), 0o755); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "the problem", func() bool {
		return slices.ContainsFunc(report(t, c.Laptop).Problems, func(p string) bool { return strings.Contains(p, "the body was changed") })
	})
	if err := agenttest.Ping(conn); err != nil {
		t.Errorf("the live connection: %v", err)
	}
	if !reaches(c.Local) {
		t.Error("a new connection fails")
	}
}

func TestListenerInUse(t *testing.T) {
	c := newCluster(t, agenttest.Echo(t))
	taken, err := net.Listen("tcp", c.SOCKS[bob])
	if err != nil {
		t.Fatal(err)
	}
	c.start(t)
	kit.Eventually(t, "the problem", func() bool {
		return slices.ContainsFunc(report(t, c.Laptop).Problems, func(p string) bool { return strings.Contains(p, c.SOCKS[bob]) })
	})
	if !reaches(c.Local) {
		t.Error("another listener suffers")
	}
	taken.Close()
	c.acceptLaptop(t)
	kit.Eventually(t, "the problem to go", func() bool { return len(report(t, c.Laptop).Problems) == 0 })
}

func TestListenMoves(t *testing.T) {
	c := newCluster(t, agenttest.Echo(t))
	c.start(t)
	if !reaches(c.Local) {
		t.Fatal("not reachable")
	}
	moved := agenttest.Loopback().String()
	c.Publish.Listen = []string{moved}
	c.Reach.Reach[0].Endpoints = []document.Addresses{{moved}}
	c.acceptUrsula(t)
	if l, err := net.ListenPacket("udp", moved); err == nil {
		l.Close()
		t.Error("the status tells a manifest before it is in force")
	}
	c.acceptLaptop(t)
	kit.Eventually(t, "outline at its new address", func() bool { return reaches(c.Local) })
	c.Publish.Listen, c.Publish.Publish = nil, nil
	c.acceptUrsula(t)
	kit.Eventually(t, "the listener to go", func() bool {
		l, err := net.ListenPacket("udp", moved)
		if err == nil {
			l.Close()
		}
		return err == nil
	})
}

// TestRestart checks that a stopping agent tells its peers, and that its successor is found at
// once.
func TestRestart(t *testing.T) {
	c := newCluster(t, agenttest.Echo(t))
	run(t, c.Laptop)
	stop := run(t, c.Ursula)
	kit.Eventually(t, "outline", func() bool { return reaches(c.Local) })
	conn := dial(t, c.Local)
	if err := agenttest.Ping(conn); err != nil {
		t.Fatal(err)
	}
	stop()
	wantReset(t, conn)
	run(t, c.Ursula)
	kit.Eventually(t, "ursula", func() bool { return report(t, c.Ursula).State == "running" })
	if !reaches(c.Local) {
		t.Error("not reachable after the restart")
	}
}

// TestConnectWhileStopping checks that a caller who connects while an agent stops reaches its
// successor without waiting for the old one.
func TestConnectWhileStopping(t *testing.T) {
	c := newCluster(t, agenttest.Echo(t))
	c.Publish.Publish[0].Allow = []document.Allow{{ID: alice}, {ID: bob}}
	c.acceptUrsula(t)
	run(t, c.Laptop)
	stop := runWith(t, forward.Config{Layout: c.Ursula.Layout, Socket: c.Ursula.Socket(), Poll: time.Hour, Grace: time.Second})
	kit.Eventually(t, "outline", func() bool { return reaches(c.Local) })
	live := dial(t, c.Local)
	if err := agenttest.Ping(live); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan struct{})
	go func() { defer close(stopped); stop() }() // waits for live
	time.Sleep(300 * time.Millisecond)           // until it has begun; less only makes the test easier
	answered := make(chan error, 1)
	go func() {
		defer close(answered) // also when the request fails
		conn, code := socksDial(t, c.SOCKS[bob], "outline.demo.flor.rete", c.port(t))
		if code != 0 {
			answered <- fmt.Errorf("reply %d", code)
			return
		}
		answered <- agenttest.Ping(conn)
	}()
	<-stopped
	run(t, c.Ursula)
	if err := <-answered; err != nil {
		t.Errorf("bob, who connected meanwhile: %v", err)
	}
}

// TestDrain checks that connections may end within the grace when an agent stops.
func TestDrain(t *testing.T) {
	c := newCluster(t, agenttest.Echo(t))
	c.start(t)
	ctx, cancel := context.WithCancel(t.Context())
	second := agenttest.NewHost(t, "laptop", c.CA)
	done := make(chan error, 1)
	addr := agenttest.Loopback()
	c.Reach.Reach[0].Listen, c.Reach.SOCKS = addr, nil
	second.Accept(c.Reach, alice)
	second.Deliver(c.CA, laptop, time.Hour)
	second.Deliver(c.CA, alice, time.Hour)
	go func() {
		done <- forward.Run(ctx, forward.Config{Layout: second.Layout, Socket: second.Socket(), Grace: time.Hour, Log: slog.New(slog.DiscardHandler)})
	}()
	kit.Eventually(t, "the agent", func() bool { return reaches(addr.String()) })
	conn := dial(t, addr.String())
	if err := agenttest.Ping(conn); err != nil {
		t.Fatal(err)
	}
	cancel()
	kit.Eventually(t, "the listener to close", func() bool { return !reaches(addr.String()) })
	if err := agenttest.Ping(conn); err != nil {
		t.Errorf("the live connection: %v", err)
	}
	conn.CloseWrite()
	wantEOF(t, conn)
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(kit.Patience):
		t.Error("the agent waits longer than its last connection")
	}
}

func TestSocketInUse(t *testing.T) {
	c := newCluster(t, agenttest.Echo(t))
	c.start(t)
	err := forward.Run(t.Context(), forward.Config{Layout: c.Laptop.Layout, Socket: c.Laptop.Socket(), Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "another agent serves it") {
		t.Errorf("error %v", err)
	}
	if report(t, c.Laptop).State != "running" {
		t.Error("the first agent suffers")
	}
	for _, word := range []string{"whois", "ping", "metrics", "handover"} {
		if _, err := os.Stat(status.Beside(c.Laptop.Socket(), word)); err != nil {
			t.Errorf("of the first agent: %v", err)
		}
	}
}

// TestNothingIsLeft checks that Run leaves no goroutine and no file open.
func TestNothingIsLeft(t *testing.T) {
	c := newCluster(t, agenttest.Echo(t))
	leavesNothing(t, c, func() (live net.Conn) {
		kit.Eventually(t, "outline", func() bool { return reaches(c.Local) })
		conn, code := socksDial(t, c.SOCKS[bob], "outline.demo.flor.rete", c.port(t))
		if code != 2 {
			t.Errorf("bob: reply %d, want 2", code)
		}
		conn.Close()
		live = dial(t, c.Local)
		if err := agenttest.Ping(live); err != nil {
			t.Fatal(err)
		}
		return live
	})
}

// leavesNothing runs the agents of c repeatedly with use, and checks that nothing is left.
func leavesNothing(t *testing.T, c *cluster, use func() (live net.Conn)) {
	t.Helper()
	cycle := func() {
		stops := []func(){run(t, c.Ursula), run(t, c.Laptop)}
		for _, h := range []*agenttest.Host{c.Ursula, c.Laptop} {
			kit.Eventually(t, h.Name, func() bool { return report(t, h).State == "running" })
		}
		live := use()
		for _, stop := range stops {
			stop()
		}
		live.Close()
	}
	cycle() // starts the goroutines that the runtime starts only once
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	for range 3 {
		cycle()
	}
	defer func() {
		if t.Failed() {
			pprof.Lookup("goroutine").WriteTo(t.Output(), 1)
		}
	}()
	kit.Succeeds(t, "all to be closed", func() error {
		runtime.GC() // closes the pipes that the upstream's io.Copy keeps for reuse
		if g, f := runtime.NumGoroutine(), openFiles(t); g > goroutines || f > files {
			return fmt.Errorf("%d goroutines and %d files, want %d and %d", g, f, goroutines, files)
		}
		return nil
	})
	for _, h := range []*agenttest.Host{c.Ursula, c.Laptop} {
		if _, err := os.Stat(h.Socket()); err == nil {
			t.Errorf("%s is left", h.Socket())
		}
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// TestBytesAreCountedOnBothSides checks the counts in both directions, seen from the caller.
func TestBytesAreCountedOnBothSides(t *testing.T) {
	c := newCluster(t, agenttest.Upstream(t, func(c *net.TCPConn) {
		io.CopyN(io.Discard, c, 1000)
		c.Write(make([]byte, 3000))
		c.CloseWrite()
		io.Copy(io.Discard, c)
	}))
	c.start(t)
	conn := dial(t, c.Local)
	conn.Write(make([]byte, 1000))
	if n, err := io.Copy(io.Discard, conn); n != 3000 || err != nil {
		t.Fatalf("got %d bytes, %v", n, err)
	}
	for _, h := range []*agenttest.Host{c.Ursula, c.Laptop} {
		kit.Eventually(t, h.Name+" to count", func() bool {
			r := report(t, h)
			return len(r.Paths) == 1 && r.Paths[0].Sent == 1000 && r.Paths[0].Received == 3000 && r.Connections == 1
		})
	}
	conn.Close()
	for _, h := range []*agenttest.Host{c.Ursula, c.Laptop} {
		kit.Eventually(t, h.Name+" to count the end", func() bool { return report(t, h).Connections == 0 })
	}
}
