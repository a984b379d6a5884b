package forward_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// associate requests a UDP association from a SOCKS5 listener, and returns the socket to send to.
func associate(t *testing.T, proxy string) (control, relay net.Conn) {
	t.Helper()
	control = dial(t, proxy)
	control.Write([]byte{5, 1, 0})
	if _, err := io.ReadFull(control, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	control.Write([]byte{5, 3, 0, 1, 0, 0, 0, 0, 0, 0})
	var reply [10]byte
	if _, err := io.ReadFull(control, reply[:]); err != nil || reply[1] != 0 || reply[3] != 1 {
		t.Fatalf("reply %v, %v", reply, err)
	}
	at := net.UDPAddr{IP: net.IP(reply[4:8]), Port: int(binary.BigEndian.Uint16(reply[8:]))}
	return control, dialUDP(t, at.String())
}

// to returns a SOCKS5 datagram to a name.
func to(name, payload string) []byte {
	b := append([]byte{0, 0, 0, 3, byte(len(name))}, name...)
	return append(binary.BigEndian.AppendUint16(b, 53), payload...)
}

func TestAssociate(t *testing.T) {
	upstream, _ := echoUDP(t)
	c := newUDPCluster(t, upstream)
	c.start(t)
	control, relay := associate(t, c.SOCKS[alice])
	for _, payload := range []string{"ping", string(bytes.Repeat([]byte("x"), 60_000))} {
		if err := exchange(relay, to("outline.demo.flor.rete", payload)); err != nil {
			t.Fatal(err)
		}
	}
	kit.Eventually(t, "the laptop to count", func() bool {
		p := report(t, c.Laptop).Paths
		return len(p) == 1 && p[0].Total == 1 && p[0].Sent == 60_004
	})
	control.Close()
	kit.Eventually(t, "the session to end", func() bool { return report(t, c.Laptop).Connections == 0 })
	kit.Eventually(t, "a closed port", func() bool { return refusesUDP(relay) })
}

func TestAssociateRefuses(t *testing.T) {
	upstream, senders := echoUDP(t)
	c := newUDPCluster(t, upstream)
	c.Reach.Reach = append(c.Reach.Reach, document.Reachable{
		ID: kit.ID("service/wiki"), Callers: []spiffe.ID{alice}, Listen: agenttest.Loopback(), Endpoints: []document.Addresses{{"127.0.0.1:9"}},
	})
	c.acceptLaptop(t)
	c.start(t)
	_, asAlice := associate(t, c.SOCKS[alice])
	_, asBob := associate(t, c.SOCKS[bob])
	fragment := to("outline.demo.flor.rete", "ping")
	fragment[2] = 1
	for _, x := range []struct {
		what   string
		relay  net.Conn
		send   []byte
		reason string
	}{
		{"nothing", asAlice, nil, "bad-datagram"},
		{"half a header", asAlice, to("outline.demo.flor.rete", "")[:12], "bad-datagram"},
		{"a fragment", asAlice, fragment, "bad-datagram"},
		{"an address", asAlice, []byte{0, 0, 0, 1, 127, 0, 0, 1, 0, 53, 'x'}, "bad-name"},
		{"a DNS name", asAlice, to("localhost.example", "x"), "bad-name"},
		{"a service that nobody told of", asAlice, to("other.demo.flor.rete", "x"), "not-reachable"},
		{"a service that speaks TCP", asAlice, to("wiki.demo.flor.rete", "x"), "not-reachable"},
		{"the far side's list denies", asBob, to("outline.demo.flor.rete", "x"), "denied"},
	} {
		before := report(t, c.Laptop).Refusals[x.reason]
		x.relay.Write(x.send)
		kit.Eventually(t, fmt.Sprintf("%s to be refused", x.what), func() bool { return report(t, c.Laptop).Refusals[x.reason] == before+1 })
	}
	wantSilence(t, asAlice)
	if len(senders) > 0 {
		t.Error("the service heard of it")
	}
}

// TestAssociateChange checks that datagrams of a user who is no longer a caller of the identity are
// dropped.
func TestAssociateChange(t *testing.T) {
	upstream, _ := echoUDP(t)
	c := newUDPCluster(t, upstream)
	c.start(t)
	_, relay := associate(t, c.SOCKS[alice])
	if err := exchange(relay, to("outline.demo.flor.rete", "ping")); err != nil {
		t.Fatal(err)
	}
	c.Reach.Callers = []document.Caller{{ID: alice, UIDs: []uint32{64999}}}
	c.acceptLaptop(t)
	kit.Eventually(t, "the session to end", func() bool { return report(t, c.Laptop).Connections == 0 })
	sendInVain(t, relay, to("outline.demo.flor.rete", "ping"))
	refusals(t, c.Laptop, "not-caller", 1)
}

// TestAssociations checks the limit of associations of a user, and that another is possible once
// one has ended.
func TestAssociations(t *testing.T) {
	upstream, _ := echoUDP(t)
	c := newUDPCluster(t, upstream)
	c.start(t)
	code := func() (net.Conn, byte) {
		return socksRequest(t, c.SOCKS[alice], []byte{5, 3, 0, 1, 0, 0, 0, 0, 0, 0})
	}
	var first net.Conn
	for i := range 256 {
		conn, reply := code()
		if reply != 0 {
			t.Fatalf("reply %d to association %d", reply, i)
		}
		if first == nil {
			first = conn
		}
	}
	if _, reply := code(); reply != 1 {
		t.Errorf("reply %d to one more, want 1", reply)
	}
	refusals(t, c.Laptop, "too-many", 1)
	first.Close()
	kit.Eventually(t, "room", func() bool { _, reply := code(); return reply == 0 })
}
