package forward_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"github.com/florete/florete/agent/forward"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// newUDPCluster returns a Cluster whose outline speaks UDP.
func newUDPCluster(t *testing.T, upstream string) *cluster {
	t.Helper()
	c := newCluster(t, upstream)
	c.Publish.Publish[0].Protocol, c.Reach.Reach[0].Protocol = document.UDP, document.UDP
	c.acceptUrsula(t)
	c.acceptLaptop(t)
	return c
}

// startUDP starts such a cluster with a session.
func startUDP(t *testing.T) (*cluster, net.Conn) {
	t.Helper()
	upstream, _ := echoUDP(t)
	c := newUDPCluster(t, upstream)
	c.start(t)
	conn := dialUDP(t, c.Local)
	if err := exchange(conn, []byte("ping")); err != nil {
		t.Fatal(err)
	}
	return c, conn
}

// echoUDP starts an upstream that echoes datagrams and returns their senders.
func echoUDP(t *testing.T) (addr string, senders chan net.Addr) {
	t.Helper()
	senders = make(chan net.Addr, 1<<16)
	return echoUDPAt(t, "127.0.0.1:0", senders).LocalAddr().String(), senders
}

func echoUDPAt(t *testing.T, addr string, senders chan<- net.Addr) net.PacketConn {
	t.Helper()
	c, err := net.ListenPacket("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	go func() {
		b := make([]byte, 1<<16)
		for {
			n, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			if senders != nil {
				senders <- from
			}
			c.WriteTo(b[:n], from)
		}
	}()
	return c
}

func dialUDP(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// exchange sends a datagram and expects it back.
func exchange(c net.Conn, payload []byte) error { return exchangeIn(kit.Patience, c, payload) }

// exchangeIn is like exchange with a limit. It skips late answers to earlier datagrams.
func exchangeIn(limit time.Duration, c net.Conn, payload []byte) error {
	if _, err := c.Write(payload); err != nil {
		return err
	}
	c.SetReadDeadline(time.Now().Add(limit))
	for b := make([]byte, 1<<16); ; {
		if n, err := c.Read(b); err != nil || bytes.Equal(b[:n], payload) {
			return err
		}
	}
}

// reachesUDP may have to be repeated, since datagrams of a refused session are dropped for a
// second.
func reachesUDP(c net.Conn) bool { return exchangeIn(time.Second, c, []byte("anybody?")) == nil }

// refusesUDP reports whether nobody listens.
func refusesUDP(c net.Conn) bool {
	return errors.Is(exchangeIn(time.Second, c, []byte("anybody?")), syscall.ECONNREFUSED)
}

// sendInVain sends a datagram that must not be answered any more.
func sendInVain(t *testing.T, c net.Conn, payload []byte) {
	t.Helper()
	raw, err := c.(*net.UDPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	raw.Control(func(fd uintptr) { // discards late answers to earlier datagrams
		for err == nil {
			_, _, err = unix.Recvfrom(int(fd), nil, unix.MSG_DONTWAIT)
		}
	})
	if _, err := c.Write(payload); err != nil {
		t.Fatal(err)
	}
	wantSilence(t, c)
}

func wantSilence(t *testing.T, c net.Conn) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	if n, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("got %d bytes, %v, want silence", n, err)
	}
}

func TestDatagrams(t *testing.T) {
	upstream, senders := echoUDP(t)
	c := newUDPCluster(t, upstream)
	c.start(t)
	a, b := dialUDP(t, c.Local), dialUDP(t, c.Local)
	for _, size := range []int{4, 0, 1200, 1500, 9000, 60_000, 65507, 1} {
		payload := make([]byte, size)
		rand.Read(payload)
		for _, conn := range []net.Conn{a, b} {
			if err := exchange(conn, payload); err != nil {
				t.Fatalf("%d bytes: %v", size, err)
			}
		}
	}
	seen := map[string]bool{}
	for range 16 {
		seen[(<-senders).String()] = true
	}
	if len(seen) != 2 {
		t.Errorf("the upstream saw %d senders, want one for each session", len(seen))
	}
	for _, h := range []*agenttest.Host{c.Ursula, c.Laptop} {
		kit.Eventually(t, h.Name+" to count", func() bool {
			p := report(t, h).Paths
			return len(p) == 1 && p[0].Live == 2 && p[0].Total == 2 && p[0].Sent == p[0].Received && p[0].Sent == 2*137212
		})
	}
}

// TestUnconnectedSender checks that one socket that sends to two services has a session with each.
func TestUnconnectedSender(t *testing.T) {
	upstream, _ := echoUDP(t)
	c := newUDPCluster(t, upstream)
	c.start(t)
	conn, err := net.ListenPacket("udp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	to := net.UDPAddrFromAddrPort(c.Reach.Reach[0].Listen)
	conn.WriteTo([]byte("ping"), to)
	conn.SetReadDeadline(time.Now().Add(kit.Patience))
	b := make([]byte, 16)
	n, from, err := conn.ReadFrom(b)
	if err != nil || string(b[:n]) != "ping" || from.String() != to.String() {
		t.Fatalf("got %q from %v, %v", b[:n], from, err)
	}
}

// TestUDPCallers checks that the owner of the socket decides, and that root is no exception.
func TestUDPCallers(t *testing.T) {
	agenttest.Root(t, "can start a process of another user")
	const alicesUID, bobsUID, nobodysUID = 64997, 64998, 64999
	upstream, senders := echoUDP(t)
	c := newUDPCluster(t, upstream)
	c.Reach.Callers = []document.Caller{{ID: alice, UIDs: []uint32{alicesUID}}, {ID: bob, UIDs: []uint32{bobsUID}}}
	c.Reach.Reach[0].Callers = []spiffe.ID{alice}
	c.acceptLaptop(t)
	c.start(t)
	if err := agenttest.SendAs(t, alicesUID, c.Local); err != nil {
		t.Fatalf("alice: %v", err)
	}
	<-senders
	for uid, reason := range map[uint32]string{bobsUID: "not-reachable", nobodysUID: "unknown-caller", 0: "unknown-caller"} {
		err := agenttest.SendInVain(t, uid, c.Local, func() bool { return refused(t, c.Laptop, reason, uid) })
		if err != nil || !refused(t, c.Laptop, reason, uid) {
			t.Errorf("uid %d: %v, want silence and %s", uid, err, reason)
		}
	}
	if len(senders) > 0 {
		t.Error("the service heard of a caller who was refused")
	}
}

// TestPortTakenOver checks that an address is attributed to its present owner, not to the owner
// when its session began.
func TestPortTakenOver(t *testing.T) {
	agenttest.Root(t, "can start a process of another user")
	upstream, senders := echoUDP(t)
	c := newUDPCluster(t, upstream)
	c.start(t)
	conn := dialUDP(t, c.Local)
	if err := exchange(conn, []byte("ping")); err != nil {
		t.Fatal(err)
	}
	<-senders
	at := conn.LocalAddr().String()
	conn.Close()
	const other = 64999
	no := func() bool { return refused(t, c.Laptop, "unknown-caller", other) }
	if err := agenttest.SendInVain(t, other, c.Local, no, at); err != nil || !no() {
		t.Errorf("another user at the same address: %v, want silence and unknown-caller", err)
	}
	if len(senders) > 0 {
		t.Error("the service heard of it")
	}
}

func TestUDPAllowListChange(t *testing.T) {
	c, conn := startUDP(t)
	c.Publish.Publish[0].Allow = []document.Allow{{ID: bob}}
	c.acceptUrsula(t)
	kit.Eventually(t, "the session to end", func() bool { return report(t, c.Ursula).Connections == 0 && report(t, c.Laptop).Connections == 0 })
	refusals(t, c.Ursula, "denied", 1)
	sendInVain(t, conn, []byte("ping"))
	c.Publish.Publish[0].Allow = []document.Allow{{ID: alice}}
	c.acceptUrsula(t)
	kit.Eventually(t, "alice to be let in again", func() bool { return reachesUDP(conn) })
}

func TestUDPReachableChange(t *testing.T) {
	c, conn := startUDP(t)
	reach := c.Reach.Reach
	c.Reach.Reach = nil
	c.acceptLaptop(t)
	kit.Eventually(t, "the session to end", func() bool { return report(t, c.Ursula).Connections == 0 && report(t, c.Laptop).Connections == 0 })
	kit.Eventually(t, "a closed port", func() bool { return refusesUDP(conn) })
	c.Reach.Reach = reach
	c.acceptLaptop(t)
	kit.Eventually(t, "outline again", func() bool { return reachesUDP(conn) })
	// The listener stays, alice may not use it any more.
	c.Reach.Reach[0].Callers = []spiffe.ID{bob}
	c.acceptLaptop(t)
	refusals(t, c.Laptop, "denied", 1)
	kit.Eventually(t, "the session to end", func() bool { return report(t, c.Ursula).Connections == 0 && report(t, c.Laptop).Connections == 0 })
	sendInVain(t, conn, []byte("ping"))
	refusals(t, c.Laptop, "not-reachable", 1)
}

// TestManySenders checks that a user with too many sessions loses the one that is idle longest.
func TestManySenders(t *testing.T) {
	upstream, _ := echoUDP(t)
	c := newUDPCluster(t, upstream)
	c.start(t)
	conn, err := net.ListenUDP("udp4", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	to := net.UDPAddrFromAddrPort(c.Reach.Reach[0].Listen)
	ask := func(i int) error {
		// One socket can send from all addresses of this host.
		from := (&ipv4.ControlMessage{Src: net.IPv4(127, 9, byte(i>>8), byte(i))}).Marshal()
		if _, _, err := conn.WriteMsgUDP([]byte{1}, from, to); err != nil {
			return err
		}
		conn.SetReadDeadline(time.Now().Add(kit.Patience))
		_, err := conn.Read(make([]byte, 16))
		return err
	}
	const most = 1024
	for i := range most + 50 {
		if err := ask(i); err != nil {
			t.Fatalf("sender %d: %v", i, err)
		}
	}
	for _, h := range []*agenttest.Host{c.Ursula, c.Laptop} {
		kit.Eventually(t, h.Name+" to have no more sessions than it should", func() bool { return report(t, h).Connections <= most }) // fewer once some were idle for too long
	}
	if err := ask(0); err != nil {
		t.Errorf("who lost a session gets another: %v", err)
	}
	if p := report(t, c.Laptop).Paths[0]; p.Total != most+51 {
		t.Errorf("%d sessions, want %d", p.Total, most+51)
	}
}

// TestProtocolChange checks that a service is carried as the manifests of both ends say, also if
// connections exist.
func TestProtocolChange(t *testing.T) {
	c := newCluster(t, agenttest.Echo(t))
	c.start(t)
	if !reaches(c.Local) {
		t.Fatal("not reachable over TCP")
	}
	upstream, _ := echoUDP(t)
	c.Publish.Publish[0].Protocol, c.Publish.Publish[0].Upstream = document.UDP, upstream
	c.acceptUrsula(t)
	wantRefused(t, c.Local)
	refusals(t, c.Ursula, "bad-preamble", 1)
	c.Reach.Reach[0].Protocol = document.UDP
	c.acceptLaptop(t)
	if _, code := socksDial(t, c.SOCKS[alice], "outline.demo.flor.rete", c.port(t)); code != 2 {
		t.Errorf("SOCKS5 CONNECT to a UDP service: reply %d, want 2", code)
	}
	conn := dialUDP(t, c.Local)
	kit.Eventually(t, "outline over UDP", func() bool { return reachesUDP(conn) })
}

// TestUDPUpstreamIsGone checks an upstream whose absence a datagram reveals, and that comes back.
func TestUDPUpstreamIsGone(t *testing.T) {
	at := agenttest.Loopback().String()
	c := newUDPCluster(t, at)
	c.start(t)
	conn := dialUDP(t, c.Local)
	for range 2 {
		server := echoUDPAt(t, at, nil)
		kit.Eventually(t, "an answer", func() bool { return reachesUDP(conn) })
		server.Close()
		before := report(t, c.Laptop).Refusals["upstream-refused"]
		beforeUrsula := report(t, c.Ursula).Refusals["upstream-refused"]
		began := time.Now()
		conn.Write([]byte("ping"))
		refusals(t, c.Laptop, "upstream-refused", before+1)
		for range 20 {
			conn.Write([]byte("ping"))
			time.Sleep(time.Millisecond)
		}
		refusals(t, c.Ursula, "upstream-refused", beforeUrsula+1)
		n := report(t, c.Laptop).Refusals["upstream-refused"] - before
		if most := 1 + int64(time.Since(began)/time.Second); n > most {
			t.Errorf("%d refusals of 21 datagrams, want %d, one in a second", n, most)
		}
	}
}

// TestUDPRestart checks that sessions move to the next agent by themselves, and that no side waits
// for them when it stops.
func TestUDPRestart(t *testing.T) {
	upstream, _ := echoUDP(t)
	c := newUDPCluster(t, upstream)
	stops := map[*agenttest.Host]func(){}
	for _, h := range []*agenttest.Host{c.Ursula, c.Laptop} {
		stops[h] = runWith(t, forward.Config{Layout: h.Layout, Socket: h.Socket(), Poll: time.Hour, Grace: time.Minute})
	}
	conn := dialUDP(t, c.Local)
	kit.Eventually(t, "outline", func() bool { return reachesUDP(conn) })
	for _, h := range []*agenttest.Host{c.Ursula, c.Laptop} {
		began := time.Now()
		stops[h]()
		if took := time.Since(began); took > kit.Patience {
			t.Errorf("%s took %s to stop, and has a minute for what must not be cut", h.Name, took)
		}
		kit.Eventually(t, "the session to end", func() bool { return report(t, c.Laptop).Connections == 0 })
		if n := report(t, c.Laptop).Refusals["stopping"]; n > 0 {
			t.Errorf("%d refusals of sessions that were let through", n)
		}
		run(t, h)
		kit.Eventually(t, "outline after the restart of "+h.Name, func() bool { return reachesUDP(conn) })
	}
}

func TestNothingIsLeftOfUDP(t *testing.T) {
	upstream, _ := echoUDP(t)
	c := newUDPCluster(t, upstream)
	leavesNothing(t, c, func() net.Conn {
		live := dialUDP(t, c.Local)
		kit.Eventually(t, "outline", func() bool { return reachesUDP(live) })
		return live
	})
}

// TestLoss checks that lost datagrams are not sent again, and do not delay later ones.
func TestLoss(t *testing.T) {
	upstream, senders := echoUDP(t)
	c := newUDPCluster(t, upstream)
	there, back := newLossy(t, c.Publish.Listen[0])
	c.Reach.Reach[0].Endpoints = []document.Addresses{{there.addr}}
	c.acceptLaptop(t)
	c.start(t)
	conn := dialUDP(t, c.Local)
	const first, rounds = 3, 10
	for range first { // datagrams before the first answer travel on the stream, which sends lost data again
		if err := exchange(conn, []byte("first")); err != nil {
			t.Fatal(err)
		}
	}
	// A busy machine also loses datagrams, so lost datagrams are sent again.
	sent := first
	for way, l := range map[string]*lossy{"there": there, "back": back} {
		for range rounds {
			before := l.lost.Load()
			l.losing.Store(true)
			kit.Succeeds(t, "a loss "+way, func() error {
				sent++
				conn.Write(make([]byte, lossySize))
				for range 50 {
					if l.lost.Load() > before {
						return nil
					}
					time.Sleep(time.Millisecond)
				}
				return errors.New("nothing was lost")
			})
			l.losing.Store(false)
			kit.Succeeds(t, "an answer to what is behind what was lost "+way, func() error {
				sent++
				return exchangeIn(time.Second, conn, []byte("behind"))
			})
		}
	}
	wantSilence(t, conn)
	if n, least := len(senders), first+rounds+2*rounds; n < least || n > sent-rounds {
		t.Errorf("the upstream heard %d datagrams, want %d at least, and none of those that were lost on the way there", n, least)
	}
}

// lossySize is the size of the packets that are lost. QUIC sends no other packets of that size:
// others are smaller, and probes of the path larger.
const lossySize = 1000

// lossy is one direction of a path that loses such packets on demand.
type lossy struct {
	addr   string
	losing atomic.Bool
	lost   atomic.Int64
}

// newLossy returns a path to an address, and back.
func newLossy(t *testing.T, to string) (there, back *lossy) {
	t.Helper()
	front, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { front.Close() })
	behind := dialUDP(t, to)
	there, back = &lossy{addr: front.LocalAddr().String()}, &lossy{}
	var client atomic.Pointer[net.Addr]
	go there.carry(func(b []byte) (int, error) {
		n, from, err := front.ReadFrom(b)
		if err == nil {
			client.Store(&from)
		}
		return n, err
	}, behind.Write)
	go back.carry(behind.Read, func(b []byte) (int, error) { return front.WriteTo(b, *client.Load()) })
	return there, back
}

func (l *lossy) carry(read func([]byte) (int, error), write func([]byte) (int, error)) {
	for b := make([]byte, 1<<16); ; {
		n, err := read(b)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
		case l.losing.Load() && n > lossySize && n < lossySize+100:
			l.lost.Add(1)
		default:
			write(b[:n])
		}
	}
}
