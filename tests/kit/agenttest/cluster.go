// Package agenttest sets up a small cluster for tests of the forwarder. The cluster consists of
// hosts, accounts and upstreams. Each host has the state directory that activation would have
// written.
package agenttest

import (
	"fmt"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
)

// These are the SPIFFE IDs of the services and users of a test cluster.
var (
	Outline = kit.ID("service/outline")
	Alice   = kit.ID("user/alice")
	Bob     = kit.ID("user/bob")
	Laptop  = kit.ID("node/laptop")
	Ursula  = kit.ID("node/ursula")
)

// Cluster is a test cluster of two hosts. The host Ursula publishes the service Outline to the user
// Alice. On the host Laptop, this test process acts as Alice. The user Bob has a SOCKS5 listener on
// Laptop, but is not allowed to connect to Outline.
type Cluster struct {
	CA             *kit.CA
	Ursula, Laptop *Host
	Relays         []*Host            // between Laptop and Ursula, in this order
	Publish, Reach document.Forwarder // manifests of Ursula and of Laptop
	Local          string             // listener for Outline on Laptop
	SOCKS          map[spiffe.ID]string
}

// Transport is the transport that the forwarders of new clusters use between each other.
var Transport document.Transport

// Relays is the number of relays through which Laptop reaches Ursula in new clusters, at most two.
var Relays int

// NewCluster creates a cluster and writes the state directories of its hosts. Connections to
// Outline are forwarded to the TCP address upstream.
func NewCluster(t testing.TB, upstream string) *Cluster {
	t.Helper()
	ca := kit.NewCA()
	c := &Cluster{CA: ca, Ursula: NewHost(t, "ursula", ca), Laptop: NewHost(t, "laptop", ca)}
	endpoint := Loopback().String()
	c.Publish = document.Forwarder{
		Listen:  []string{endpoint},
		Publish: []document.Published{{ID: Outline, Upstream: upstream, Allow: []document.Allow{{ID: Alice}}}},
	}
	local, a, b := Loopback(), Loopback(), Loopback()
	c.Local, c.SOCKS = local.String(), map[spiffe.ID]string{Alice: a.String(), Bob: b.String()}
	me := uint32(os.Getuid())
	c.Reach = document.Forwarder{
		Reach:   []document.Reachable{{ID: Outline, Callers: []spiffe.ID{Alice, Bob}, Listen: local, Endpoints: []document.Addresses{{endpoint}}, Transport: Transport}},
		Callers: []document.Caller{{ID: Alice, UIDs: []uint32{me}}, {ID: Bob, UIDs: []uint32{me}}},
		SOCKS:   []document.SOCKS{{ID: Alice, Listen: a}, {ID: Bob, Listen: b}},
	}
	if Relays > 0 {
		c.relay(t)
	}
	c.AcceptUrsula()
	c.AcceptLaptop()
	for id, h := range map[spiffe.ID]*Host{Ursula: c.Ursula, Outline: c.Ursula, Laptop: c.Laptop, Alice: c.Laptop, Bob: c.Laptop} {
		h.Deliver(ca, id, time.Hour)
	}
	return c
}

// relay makes Laptop reach Ursula through relays instead of directly.
func (c *Cluster) relay(t testing.TB) {
	var names []string
	relays := map[string]document.Relay{}
	for i := range Relays {
		name := fmt.Sprintf("gate%d", i+1)
		names = append(names, name)
		relays[name] = document.Relay{ID: kit.ID("vertex/" + name), Addresses: document.Addresses{Loopback().String()}}
		c.Relays = append(c.Relays, NewHost(t, name, c.CA))
	}
	label := func(i int) string { return fmt.Sprintf("%032x", i+1) }
	for i, name := range names {
		route := document.RelayRoute{Label: label(i), To: Ursula, From: []spiffe.ID{Laptop}}
		f := document.Forwarder{Listen: relays[name].Addresses, Transport: Transport}
		if i > 0 {
			route.From = []spiffe.ID{relays[names[i-1]].ID}
		}
		if i+1 < len(names) {
			next := names[i+1]
			route.To, route.Next, f.Relays = relays[next].ID, label(i+1), map[string]document.Relay{next: relays[next]}
		}
		f.Relay = &document.Relaying{ID: relays[name].ID, Routes: []document.RelayRoute{route}}
		c.Relays[i].Accept(f, f.Relay.ID)
		c.Relays[i].Deliver(c.CA, kit.ID("node/"+name), time.Hour)
		c.Relays[i].Deliver(c.CA, f.Relay.ID, time.Hour)
	}
	first, last := names[0], names[len(names)-1]
	opaque := fmt.Sprintf("%032x", 0xabc)
	c.Publish.Listen, c.Publish.Transport = []string{Loopback().String()}, Transport
	c.Publish.Relays, c.Publish.Uplinks = map[string]document.Relay{last: relays[last]}, []string{last}
	c.Publish.Publish[0].OpaqueName = opaque
	r := &c.Reach.Reach[0]
	r.Endpoints, r.Via, r.OpaqueName = []document.Addresses{}, []document.Via{{By: names, Label: label(0)}}, opaque
	c.Reach.Relays = map[string]document.Relay{first: relays[first]}
}

// AcceptUrsula puts the manifest in Publish in force on Ursula.
func (c *Cluster) AcceptUrsula() { c.Ursula.Accept(c.Publish, Outline) }

// AcceptLaptop puts the manifest in Reach in force on Laptop.
func (c *Cluster) AcceptLaptop() { c.Laptop.Accept(c.Reach, Alice, Bob) }

// LoopbackIP is a loopback address that no other test process uses, so that tests run in parallel.
var LoopbackIP = func(pid int) netip.Addr {
	return netip.AddrFrom4([4]byte{127, 128 | byte(pid>>16), byte(pid >> 8), byte(pid)})
}(os.Getpid())

var loopbacks atomic.Uint32

// Loopback returns a loopback address and port that no other test uses. The port is outside the
// kernel's range of ephemeral ports.
func Loopback() netip.AddrPort { return netip.AddrPortFrom(LoopbackIP, uint16(4000+loopbacks.Add(1))) }

// RefusingTCP returns a loopback address that refuses connections until the test ends, because a
// socket is bound to it but does not listen.
func RefusingTCP(t testing.TB) string {
	t.Helper()
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(s) })
	if err := unix.Bind(s, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	bound, err := unix.Getsockname(s)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", bound.(*unix.SockaddrInet4).Port)
}
