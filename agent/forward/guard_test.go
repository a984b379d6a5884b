package forward_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"github.com/florete/florete/agent/forward/upstream"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// Accounts of these tests.
const alicesUID, bobsUID = 4001, 4002

// ownTables is agenttest.OwnNetwork, if the program that makes tables is installed.
func ownTables(t *testing.T) bool {
	t.Helper()
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("NOT RUN: no nft in PATH, on Debian it is in the package nftables")
	}
	return agenttest.OwnNetwork(t)
}

// guarded keeps the table of a host in force, in a network of the test's own.
func guarded(t *testing.T, h *agenttest.Host) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() {
		ended <- upstream.RunGuard(ctx, upstream.GuardConfig{Layout: h.Layout, Account: "root", Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if upstream.Guarded(context.Background(), "") {
			t.Error("the table is still there")
		}
	})
	kit.Eventually(t, "the table", func() bool { return upstream.Guarded(ctx, "") })
}

// dialAs connects as another account.
func dialAs(t *testing.T, uid uint32, addr string) (err error) {
	t.Helper()
	agenttest.As(t, uid, func() {
		var s int
		if s, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err == nil {
			err = unix.Connect(s, sockaddr(addr))
			unix.Close(s)
		}
	})
	return err
}

func sockaddr(addr string) *unix.SockaddrInet4 {
	a := netip.MustParseAddrPort(addr)
	return &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())}
}

// TestGuardUpstream checks that no other account of the service's host can bypass the allow list.
func TestGuardUpstream(t *testing.T) {
	if !ownTables(t) {
		return
	}
	c := newCluster(t, agenttest.Echo(t))
	const daemon = 1
	at := c.Publish.Publish[0].Upstream
	c.Publish.Publish[0].User = "daemon"
	c.acceptUrsula(t)
	if err := dialAs(t, alicesUID, at); err != nil {
		t.Fatalf("without a guard: %v", err)
	}
	guarded(t, c.Ursula)
	c.start(t)
	for _, uid := range []uint32{alicesUID, 2, 65534} {
		if err := dialAs(t, uid, at); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("uid %d: %v, want it refused", uid, err)
		}
	}
	for _, uid := range []uint32{0, daemon} {
		if err := dialAs(t, uid, at); err != nil {
			t.Errorf("uid %d: %v", uid, err)
		}
	}
	if !reaches(c.Local) {
		t.Error("the service is not reached as it should be")
	}
	// The documents in force decide.
	c.Publish.Publish[0].User = ""
	c.acceptUrsula(t)
	kit.Eventually(t, "accounts of the system to be let in", func() bool { return dialAs(t, 2, at) == nil })
	if err := dialAs(t, alicesUID, at); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("somebody who logs in: %v, want it refused", err)
	}
	// If another program removes the table, the guard restores it.
	if out, err := exec.Command("nft", "flush", "ruleset").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	kit.Eventually(t, "the table to be put back", func() bool { return errors.Is(dialAs(t, alicesUID, at), syscall.ECONNREFUSED) })
}

// socketOf returns a UDP socket of an account at an address, which others may share.
func socketOf(t *testing.T, uid uint32, at string, shared bool) int {
	t.Helper()
	var s int
	var err error
	agenttest.As(t, uid, func() {
		if s, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return
		}
		if shared {
			unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		}
		err = unix.Bind(s, sockaddr(at))
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestGuardSenders checks that bob's datagrams are never carried as alice's, whatever source
// address they have, and that no answers to them reach alice.
func TestGuardSenders(t *testing.T) {
	if !ownTables(t) {
		return
	}
	upstream, senders := echoUDP(t)
	c := newUDPCluster(t, upstream)
	c.Reach.Callers = []document.Caller{{ID: alice, UIDs: []uint32{alicesUID}}, {ID: bob, UIDs: []uint32{bobsUID}}}
	c.acceptLaptop(t)
	c.start(t)
	to := sockaddr(c.Local)

	// Without a guard, the forwarder cannot know which of the two accounts sent it.
	send := func(s int) { unix.Sendto(s, []byte("x"), 0, to) }
	wait := func(what string) {
		t.Helper()
		select {
		case <-senders:
		case <-time.After(kit.Patience):
			t.Fatal("waited in vain for " + what)
		}
	}
	mine := socketOf(t, alicesUID, "127.89.41.1:45111", true)
	defer unix.Close(mine)
	send(mine)
	refusals(t, c.Laptop, "unproven-sender", 1)

	guarded(t, c.Laptop)
	kit.Eventually(t, "alice's datagram to arrive", func() bool { send(mine); return len(senders) > 0 })
	send(mine)
	wait("alice's session")
	drain := func() {
		for len(senders) > 0 {
			<-senders
		}
		for {
			if _, _, err := unix.Recvfrom(mine, make([]byte, 16), unix.MSG_DONTWAIT); err != nil {
				return
			}
		}
	}
	quiet := func(what string) {
		t.Helper()
		time.Sleep(200 * time.Millisecond) // less only makes the test easier
		if len(senders) > 0 {
			t.Errorf("%s: the service has got it", what)
		}
		if n, _, err := unix.Recvfrom(mine, make([]byte, 16), unix.MSG_DONTWAIT); err == nil {
			t.Errorf("%s: alice hears %d bytes", what, n)
		}
	}
	time.Sleep(200 * time.Millisecond) // answers to alice
	drain()

	his := socketOf(t, bobsUID, "127.89.41.9:45111", false)
	defer unix.Close(his)
	source := (&ipv4.ControlMessage{Src: net.IPv4(127, 89, 41, 1)}).Marshal()
	if err := unix.Sendmsg(his, []byte("SPOOFED"), source, to, 0); err != nil {
		t.Fatal(err)
	}
	refusals(t, c.Laptop, "not-sender", 1)
	quiet("IP_PKTINFO")

	shared := socketOf(t, bobsUID, "127.89.41.1:45111", true)
	send(shared)
	send(mine) // whose address the kernel gives to the newer socket
	refusals(t, c.Laptop, "not-sender", 2)
	unix.Close(shared)
	quiet("SO_REUSEADDR")

	// What waits in the queue when alice takes bob's address. He is let through as
	// himself, which ursula refuses, or not at all.
	for range 20 {
		his := socketOf(t, bobsUID, "127.89.41.2:45112", false)
		for range 50 {
			send(his)
		}
		unix.Close(his)
		hers := socketOf(t, alicesUID, "127.89.41.2:45112", false)
		time.Sleep(20 * time.Millisecond)
		unix.Close(hers)
	}
	quiet("queued")

	// An account that is not a caller sends from its own address and from alice's.
	other := socketOf(t, 4003, "127.89.41.3:45111", false)
	defer unix.Close(other)
	send(other)
	refusals(t, c.Laptop, "unknown-caller", 1)
	before := report(t, c.Laptop).Refusals["not-sender"]
	if err := unix.Sendmsg(other, []byte("SPOOFED"), source, to, 0); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "another refusal", func() bool {
		unix.Sendmsg(other, []byte("SPOOFED"), source, to, 0) // a refused sender is ignored for a while
		return report(t, c.Laptop).Refusals["not-sender"] > before
	})
	quiet("no caller")
	send(mine)
	wait("alice in the end")
}

// TestGuardUDPUpstream checks that other accounts can neither send datagrams to a service nor forge
// its answers.
func TestGuardUDPUpstream(t *testing.T) {
	if !ownTables(t) {
		return
	}
	at := agenttest.Loopback()
	heard := make(chan net.Addr, 64)
	echoUDPAt(t, at.String(), heard)
	c := newUDPCluster(t, at.String())
	c.start(t)
	guarded(t, c.Ursula)
	s := socketOf(t, alicesUID, netip.AddrPortFrom(netip.MustParseAddr("127.89.41.9"), at.Port()).String(), false)
	defer unix.Close(s)
	unix.Sendto(s, []byte("x"), 0, sockaddr(at.String()))
	forger, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer forger.Close()
	unix.Sendmsg(s, []byte("forged"), (&ipv4.ControlMessage{Src: at.Addr().AsSlice()}).Marshal(), sockaddr(forger.LocalAddr().String()), 0)
	forger.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if n, from, err := forger.ReadFrom(make([]byte, 16)); err == nil {
		t.Errorf("%d bytes of an answer that was never given, from %s", n, from)
	}
	if len(heard) > 0 {
		t.Error("the service has got it")
	}
	conn := dialUDP(t, c.Local)
	if err := exchange(conn, []byte("ping")); err != nil {
		t.Errorf("through the forwarder: %v", err)
	}
}
