package transport_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
)

// silent returns an address at which nobody answers.
func silent(t *testing.T) string {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.LocalAddr().String()
}

// several returns a route to one forwarder with several addresses.
func several(t *testing.T, addresses ...string) transport.Route {
	t.Helper()
	r := route(t, outline, "127.0.0.1:1")
	r.Endpoints = []document.Addresses{addresses}
	return r
}

// TestAddressesOfOneForwarder checks that dead addresses, here four, are not waited for. Each would
// take as long as a handshake may, and all together longer than connecting may.
func TestAddressesOfOneForwarder(t *testing.T) {
	ca := kit.NewCA()
	s := server{addr: net.JoinHostPort("::1", "0")}
	s.start(t, host(t, "ursula", ca, outline))
	laptop := host(t, "laptop", ca, alice)
	p := pool(t, func() *hostdir.SVIDSet { return laptop })
	addresses := []string{silent(t), silent(t), "[2001:db8::1]:4610", silent(t), silent(t), s.addr}
	if err := try(t, p, several(t, addresses...)); err != nil {
		t.Fatal(err)
	}
	if n := s.accepted.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

// TestImpostorAtAnAddress covers a network with the same addresses in which another forwarder
// answers, or the right one cannot be reached.
func TestImpostorAtAnAddress(t *testing.T) {
	ca := kit.NewCA()
	var other, s server
	other.start(t, host(t, "raishan", kit.NewCA(), outline))
	s.start(t, host(t, "ursula", ca, outline))
	laptop := host(t, "laptop", ca, alice)
	p := pool(t, func() *hostdir.SVIDSet { return laptop })
	if err := try(t, p, several(t, other.addr, s.addr)); err != nil {
		t.Fatal(err)
	}
}

// TestNameWithSeveralAddresses includes a name that, as in Debian, leads to the own machine.
func TestNameWithSeveralAddresses(t *testing.T) {
	kit.Names(t, map[string][]string{"ursula.example.org": {"127.0.1.1", "127.0.0.1"}})
	ca := kit.NewCA()
	var s server
	s.start(t, host(t, "ursula", ca, outline))
	laptop := host(t, "laptop", ca, alice)
	p := pool(t, func() *hostdir.SVIDSet { return laptop })
	_, port, _ := net.SplitHostPort(s.addr)
	r := several(t, "ursula.example.org:"+port)
	if err := try(t, p, r); err != nil {
		t.Fatal(err)
	}
	found := []netip.AddrPort{netip.MustParseAddrPort("127.0.1.1:" + port), netip.MustParseAddrPort("127.0.0.1:" + port)}
	if got := p.Sort(r, found)[0]; got.String() != s.addr {
		t.Errorf("%s is tried first next time, want %s, which answered", got, s.addr)
	}
}

// TestBlackHoleOfAFamily checks that if a name has IPv6 and IPv4 addresses and one family leads
// nowhere, the other connects, whichever the resolver lists first.
func TestBlackHoleOfAFamily(t *testing.T) {
	for _, c := range []struct{ first, serves, swallows string }{
		{"::1", "127.0.0.1", "::1"}, {"127.0.0.1", "127.0.0.1", "::1"}, {"127.0.0.1", "::1", "127.0.0.1"},
	} {
		second := map[string]string{"::1": "127.0.0.1", "127.0.0.1": "::1"}[c.first]
		kit.Names(t, map[string][]string{"ursula.example.org": {c.first, second}})
		ca := kit.NewCA()
		s := server{addr: net.JoinHostPort(c.serves, "0")}
		s.start(t, host(t, "ursula", ca, outline))
		_, port, _ := net.SplitHostPort(s.addr)
		hole, err := net.ListenPacket("udp", net.JoinHostPort(c.swallows, port))
		if err != nil {
			t.Fatal(err)
		}
		laptop := host(t, "laptop", ca, alice)
		p := pool(t, func() *hostdir.SVIDSet { return laptop })
		r := several(t, "ursula.example.org:"+port)
		r.Transport = document.OverQUIC
		if err := try(t, p, r); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if n := p.Failures(r); n != 0 {
			t.Errorf("%+v: connected after %d failures, want both addresses tried at once", c, n)
		}
		hole.Close()
	}
}

// TestOrder checks that the forwarder that answered comes first, with the address at which it did,
// and the one that failed last.
func TestOrder(t *testing.T) {
	ca := kit.NewCA()
	var s server
	s.start(t, host(t, "ursula", ca, outline))
	bad := server{refuse: wire.Unreachable}
	bad.start(t, host(t, "raishan", ca, outline))
	laptop := host(t, "laptop", ca, alice)
	p := pool(t, func() *hostdir.SVIDSet { return laptop })
	p.InOrder()
	r := route(t, outline, "127.0.0.1:1")
	dead, other := silent(t), silent(t)
	r.Endpoints = []document.Addresses{{bad.addr, other}, {dead, s.addr}}
	if got, want := p.Order(r), []string{bad.addr, other, dead, s.addr}; !slices.Equal(got, want) {
		t.Errorf("at first %v, want %v", got, want)
	}
	if err := try(t, p, r); err == nil {
		t.Fatal("the upstream of one that refuses answers")
	}
	if got, want := p.Order(r), []string{dead, s.addr, bad.addr, other}; !slices.Equal(got, want) {
		t.Errorf("after the first has failed %v, want %v", got, want)
	}
	if err := try(t, p, r); err != nil {
		t.Fatal(err)
	}
	if got, want := p.Order(r), []string{s.addr, dead, bad.addr, other}; !slices.Equal(got, want) {
		t.Errorf("after one has answered %v, want %v", got, want)
	}
}

// heard records the sender of each datagram.
type heard struct {
	net.PacketConn
	mu   sync.Mutex
	from map[string]bool
}

func (h *heard) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := h.PacketConn.ReadFrom(b)
	if err == nil {
		h.mu.Lock()
		h.from[from.String()] = true
		h.mu.Unlock()
	}
	return n, from, err
}

// TestAllAddresses checks that a listener on all addresses answers from the address that was
// called. Otherwise a NAT or a firewall would drop the answer.
func TestAllAddresses(t *testing.T) {
	ca := kit.NewCA()
	s := server{addr: ":0"}
	s.start(t, host(t, "ursula", ca, outline))
	_, port, _ := net.SplitHostPort(s.addr)
	cert := host(t, "laptop", ca, alice).SVID(alice).Cert
	for _, ip := range []string{"127.0.0.1", "127.0.0.2", "::1"} {
		called := net.JoinHostPort(ip, port)
		socket, err := net.ListenPacket("udp", net.JoinHostPort(map[bool]string{true: "::1", false: "127.0.0.1"}[ip == "::1"], "0"))
		if err != nil {
			t.Fatal(err)
		}
		h := &heard{PacketConn: socket, from: map[string]bool{}}
		q := &quic.Transport{Conn: h}
		to, err := net.ResolveUDPAddr("udp", called)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
		conn, err := q.Dial(ctx, to, &tls.Config{
			ServerName: "outline.demo.flor.rete", InsecureSkipVerify: true, NextProtos: []string{wire.ALPN}, Certificates: []tls.Certificate{cert},
		}, nil)
		cancel()
		if err != nil {
			t.Errorf("%s: %v", called, err)
		} else {
			conn.CloseWithError(0, "")
		}
		q.Close()
		socket.Close()
		h.mu.Lock()
		if len(h.from) != 1 || !h.from[called] {
			t.Errorf("what was sent to %s is answered by %v", called, h.from)
		}
		h.mu.Unlock()
	}
}
