package forward_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/agent/forward"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// agentEnv contains the state directory of the agent that this binary runs as, if it is set.
const agentEnv = "FLORETE_TEST_AGENT"

// runAgent runs the agent of a host until the process is told to end.
func runAgent(state string) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	h := agenttest.Host{Layout: hostdir.Layout(state)}
	err := forward.Run(ctx, forward.Config{Layout: h.Layout, Socket: h.Socket(), Poll: time.Hour, Grace: 200 * time.Millisecond, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	stop()
	if err != nil {
		slog.Error("agent", "error", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// natted is a cluster in which Laptop and Ursula are behind a NAT each, and two relays are not:
//
//	laptop 10.1.0.2 ── nat1 ── 198.51.100.0/24 ── nat2 ── 10.2.0.2 ursula
//	                              gate1, gate2
//
// A third NAT leads from the first network to the same one, for a host that changes networks.
type natted struct {
	*agenttest.Cluster
	laptop, ursula, world *agenttest.Namespace
	nats                  [3]*agenttest.Namespace
	gates                 [2]*agenttest.Namespace
}

const forwarderPort = 4610

var gateAddresses = [2]string{"198.51.100.1", "198.51.100.2"}

// newNatted starts the agents of all hosts. mode is a flag of the statement masquerade of nft(8).
func newNatted(t *testing.T, mode string) *natted {
	t.Helper()
	n := &natted{Cluster: &agenttest.Cluster{CA: kit.NewCA()}}
	for name, ns := range map[string]**agenttest.Namespace{
		"laptop": &n.laptop, "ursula": &n.ursula, "world": &n.world, "n1": &n.nats[0], "n2": &n.nats[1], "n3": &n.nats[2], "g1": &n.gates[0], "g2": &n.gates[1],
	} {
		*ns = agenttest.NewNamespace(t, name)
	}
	n.world.IP("link add br0 type bridge", "link set br0 up")
	for i, gate := range n.gates {
		gate.Connect("wan", gateAddresses[i]+"/24", n.world)
	}
	for i, nat := range n.nats {
		nat.Connect("wan", fmt.Sprintf("198.51.100.%d/24", 11+i), n.world)
		nat.IP("link add br0 type bridge", "link set br0 up", fmt.Sprintf("address add 10.%d.0.1/24 dev br0", i+1))
		nat.Do(func() {
			if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
				t.Error(err)
			}
		})
		nat.NFT(`table ip nat {
			chain input { type filter hook input priority 0; policy accept; iifname "wan" ct state new drop; }
			chain forward { type filter hook forward priority 0; policy accept; iifname "wan" ct state new drop; }
			chain out { type nat hook postrouting priority 100; oifname "wan" masquerade ` + mode + `; }
		}`)
	}
	n.laptop.Connect("eth0", "10.1.0.2/24", n.nats[0])
	n.laptop.IP("route add default via 10.1.0.1")
	n.ursula.Connect("eth0", "10.2.0.2/24", n.nats[1])
	n.ursula.IP("route add default via 10.2.0.1")
	n.documents(t)
	return n
}

// documents writes the state of all hosts.
func (n *natted) documents(t *testing.T) {
	t.Helper()
	n.Laptop, n.Ursula = agenttest.NewHost(t, "laptop", n.CA), agenttest.NewHost(t, "ursula", n.CA)
	const opaque = "00000000000000000000000000000abc"
	n.Publish = document.Forwarder{
		Listen:  []string{fmt.Sprintf(":%d", forwarderPort)},
		Publish: []document.Published{{ID: outline, Upstream: echoIn(t, n.ursula), Allow: []document.Allow{{ID: alice}}, OpaqueName: opaque}},
		Relays:  map[string]document.Relay{},
		Meet:    true,
	}
	local := netip.MustParseAddrPort("127.0.0.1:4000")
	n.Local = local.String()
	n.Reach = document.Forwarder{
		Reach:   []document.Reachable{{ID: outline, Callers: []spiffe.ID{alice}, Listen: local, Endpoints: []document.Addresses{}, OpaqueName: opaque}},
		Callers: []document.Caller{{ID: alice, UIDs: []uint32{uint32(os.Getuid())}}},
		Relays:  map[string]document.Relay{},
		Meet:    true,
	}
	for i, at := range gateAddresses {
		name, label := fmt.Sprintf("gate%d", i+1), fmt.Sprintf("%032x", i+1)
		relay := document.Relay{ID: kit.ID("vertex/" + name), Addresses: document.Addresses{fmt.Sprintf("%s:%d", at, forwarderPort)}}
		for _, f := range []*document.Forwarder{&n.Publish, &n.Reach} {
			f.Relays[name] = relay
		}
		n.Publish.Uplinks = append(n.Publish.Uplinks, name)
		n.Reach.Reach[0].Via = append(n.Reach.Reach[0].Via, document.Via{By: []string{name}, Label: label})
		gate := agenttest.NewHost(t, name, n.CA)
		gate.Accept(document.Forwarder{
			Listen: []string{fmt.Sprintf(":%d", forwarderPort)},
			Relay:  &document.Relaying{ID: relay.ID, Routes: []document.RelayRoute{{Label: label, To: ursula, From: []spiffe.ID{laptop}}}},
		}, relay.ID)
		for _, id := range []spiffe.ID{kit.ID("node/" + name), relay.ID} {
			gate.Deliver(n.CA, id, time.Hour)
		}
		n.Relays = append(n.Relays, gate)
	}
	n.AcceptUrsula()
	n.AcceptLaptop()
	for id, h := range map[spiffe.ID]*agenttest.Host{ursula: n.Ursula, outline: n.Ursula, laptop: n.Laptop, alice: n.Laptop} {
		h.Deliver(n.CA, id, time.Hour)
	}
}

// echoIn returns the address of an echo server in a namespace.
func echoIn(t *testing.T, ns *agenttest.Namespace) (at string) {
	t.Helper()
	ns.Do(func() { at = agenttest.Echo(t) })
	return at
}

// start starts the agent of a host in a namespace. stop kills it.
func (n *natted) start(t *testing.T, h *agenttest.Host, in *agenttest.Namespace) (stop func()) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := in.Command(self)
	cmd.Env = append(os.Environ(), agentEnv+"="+string(h.Layout))
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(stop)
	kit.Eventually(t, h.Name+" to run", func() bool { return report(t, h).State == "running" })
	return stop
}

// dial connects to outline on Laptop.
func (n *natted) dial(t *testing.T) net.Conn {
	t.Helper()
	var c net.Conn
	var err error
	n.laptop.Do(func() { c, err = net.Dial("tcp", n.Local) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(kit.Patience))
	return c
}

// reaches reports whether outline answers. A failure is logged with the time that it took.
func (n *natted) reaches(t *testing.T) bool {
	t.Helper()
	began := time.Now()
	c := n.dial(t)
	defer c.Close()
	if err := agenttest.Ping(c); err != nil {
		t.Logf("%v after %s", err, time.Since(began).Round(time.Millisecond))
		return false
	}
	return true
}

// paths returns the connections of Laptop to outline.
func (n *natted) paths(t *testing.T) (all []string) {
	t.Helper()
	for _, row := range report(t, n.Laptop).PeerConnections {
		if row.Target == outline {
			all = append(all, fmt.Sprintf("%s over %s", row.Remote, row.Transport))
		}
	}
	return all
}

// uplinks returns the transports of Ursula's uplinks.
func (n *natted) uplinks(t *testing.T) (over []document.Transport) {
	t.Helper()
	for _, u := range report(t, n.Ursula).Uplinks {
		over = append(over, u.Transport)
	}
	return over
}

// startAll starts all agents and waits for the uplinks. stops kill those of the relays.
func (n *natted) startAll(t *testing.T) (stops [2]func()) {
	t.Helper()
	for i, h := range n.Relays {
		stops[i] = n.start(t, h, n.gates[i])
	}
	n.start(t, n.Ursula, n.ursula)
	n.start(t, n.Laptop, n.laptop)
	n.wantUplinks(t, document.OverQUIC)
	return stops
}

func (n *natted) wantUplinks(t *testing.T, want document.Transport) {
	t.Helper()
	kit.Eventually(t, fmt.Sprintf("uplinks over %s", want), func() bool {
		return slices.Equal(n.uplinks(t), []document.Transport{want, want})
	})
}

// viaRelay reports whether a path of Laptop is one through a relay.
func viaRelay(path string) bool { return strings.HasPrefix(path, "by ") }

// wantDirect waits until Laptop has a direct path to outline, and new streams use it.
func (n *natted) wantDirect(t *testing.T) {
	t.Helper()
	began := time.Now()
	kit.Eventually(t, "a direct path", func() bool {
		return n.reaches(t) && !slices.ContainsFunc(n.used(t), viaRelay)
	})
	t.Logf("a direct path after %s", time.Since(began).Round(time.Millisecond))
}

// used returns the paths on which the streams of a new connection were opened.
func (n *natted) used(t *testing.T) (all []string) {
	t.Helper()
	opened := func() map[string]int64 {
		by := map[string]int64{}
		for _, row := range report(t, n.Laptop).PeerConnections {
			if row.Target == outline {
				by[row.Remote] += row.Opened
			}
		}
		return by
	}
	before := opened()
	c := n.dial(t)
	defer c.Close()
	if err := agenttest.Ping(c); err != nil {
		return []string{"by nothing: " + err.Error()}
	}
	for path, count := range opened() {
		if count > before[path] {
			all = append(all, path)
		}
	}
	return all
}

// move puts Laptop into another network, behind the third NAT.
func (n *natted) move() {
	n.laptop.IP("link delete eth0")
	n.laptop.Connect("eth1", "10.3.0.2/24", n.nats[2])
	n.laptop.IP("route add default via 10.3.0.1")
}

// moveTarget puts Ursula into another network, behind the third NAT.
func (n *natted) moveTarget() {
	n.ursula.IP("link delete eth0")
	n.ursula.Connect("eth1", "10.3.0.2/24", n.nats[2])
	n.ursula.IP("route add default via 10.3.0.1")
}

// TestBehindNATs checks hosts that both are behind a NAT with endpoint-independent mapping: relays
// introduce them to each other.
func TestBehindNATs(t *testing.T) {
	n := newNatted(t, "")
	seen := captureIn(t, n.gates[0])
	n.startAll(t)
	if !n.reaches(t) {
		t.Fatal("outline is not reached")
	}
	n.wantDirect(t)
	t.Run("a new network", func(t *testing.T) {
		c := n.dial(t)
		if err := agenttest.Ping(c); err != nil {
			t.Fatal(err)
		}
		n.move()
		if err := agenttest.Ping(c); err != nil {
			t.Errorf("a connection from before: %v", err)
		}
		n.wantDirect(t)
	})
	for _, name := range []string{"outline", "alice", "service/", "user/"} {
		if bytes.Contains(seen(), []byte(name)) {
			t.Errorf("%q passed the relay in clear", name)
		}
	}
}

// TestBehindSymmetricNATs checks hosts that both are behind a NAT which maps each connection to
// another port: they stay with relays.
func TestBehindSymmetricNATs(t *testing.T) {
	n := newNatted(t, "fully-random")
	stops := n.startAll(t)
	for range 3 {
		if !n.reaches(t) {
			t.Fatal("outline is not reached")
		}
	}
	if used := n.used(t); slices.ContainsFunc(used, func(path string) bool { return !viaRelay(path) }) {
		t.Errorf("new streams use %v, want relays alone", used)
	}
	t.Run("a new network", func(t *testing.T) {
		c := n.dial(t)
		if err := agenttest.Ping(c); err != nil {
			t.Fatal(err)
		}
		n.move()
		if err := agenttest.Ping(c); err != nil {
			t.Errorf("a connection from before: %v", err)
		}
		if !n.reaches(t) {
			t.Error("outline is not reached")
		}
	})
	t.Run("UDP is dropped", func(t *testing.T) {
		n.nats[1].NFT("table ip cut { chain forward { type filter hook forward priority -1; meta l4proto udp drop; }; }")
		n.wantUplinks(t, document.OverTCP)
		if !n.reaches(t) {
			t.Error("outline is not reached")
		}
		n.nats[1].NFT("delete table ip cut")
		n.wantUplinks(t, document.OverQUIC)
	})
	t.Run("a relay is killed", func(t *testing.T) {
		used := n.used(t)
		if len(used) != 1 {
			t.Fatalf("a new stream uses %v, want one path", used)
		}
		stops[slices.Index([]string{"by gate1", "by gate2"}, used[0])]()
		// A stream that was opened before its silence was noticed may be reset.
		kit.Eventually(t, "outline to be reached", func() bool { return n.reaches(t) })
	})
}

// captureIn collects all packets of a namespace. seen returns their bytes so far.
func captureIn(t *testing.T, ns *agenttest.Namespace) (seen func() []byte) {
	t.Helper()
	var s int
	var err error
	const all = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL<<8&0xff00
	ns.Do(func() { s, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, all) })
	if err != nil {
		t.Fatal(err)
	}
	packets := os.NewFile(uintptr(s), "packets")
	var mu sync.Mutex
	var bytes []byte
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for b := make([]byte, 1<<16); ; {
			k, err := packets.Read(b)
			if err != nil && err != io.EOF {
				return
			}
			mu.Lock()
			bytes = append(bytes, b[:k]...)
			mu.Unlock()
		}
	}()
	t.Cleanup(func() { packets.Close(); <-ended })
	return func() []byte { mu.Lock(); defer mu.Unlock(); return slices.Clone(bytes) }
}
