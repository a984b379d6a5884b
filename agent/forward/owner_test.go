package forward_test

import (
	"io"
	"net"
	"testing"

	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// stranger is an account of a person who logs in.
const stranger = 4711

// TestSquatter checks that a process that takes the service's port while the service is down gets
// nothing, and is counted with a reason of its own on both hosts.
func TestSquatter(t *testing.T) {
	agenttest.Root(t, "can listen as another account")
	addr := agenttest.Loopback().String()
	var ln net.Listener
	var err error
	agenttest.As(t, stranger, func() { ln, err = net.Listen("tcp", addr) })
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	heard := make(chan []byte, 1)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			b, _ := io.ReadAll(c)
			if len(b) > 0 {
				heard <- b
			}
		}
	}()
	c := newCluster(t, addr)
	c.start(t)
	conn := dial(t, c.Local)
	conn.Write([]byte("secret"))
	wantReset(t, conn)
	refusals(t, c.Ursula, "upstream-foreign", 1)
	refusals(t, c.Laptop, "upstream-foreign", 1)
	ln.Close()
	select {
	case b := <-heard:
		t.Errorf("the squatter got %q", b)
	default:
	}
	at, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	go func() {
		for {
			c, err := at.Accept()
			if err != nil {
				return
			}
			go func() { io.Copy(c, c); c.Close() }()
		}
	}()
	if !reaches(c.Local) {
		t.Error("the service is not reached once it is there")
	}
}

// TestSquatterOfUDP replaces a service within a session.
func TestSquatterOfUDP(t *testing.T) {
	agenttest.Root(t, "can listen as another account")
	addr := agenttest.Loopback().String()
	service := echoUDPAt(t, addr, nil)
	c := newUDPCluster(t, addr)
	c.start(t)
	conn := dialUDP(t, c.Local)
	if err := exchange(conn, []byte("ping")); err != nil {
		t.Fatal(err)
	}
	service.Close()
	var squatter net.PacketConn
	var err error
	agenttest.As(t, stranger, func() { squatter, err = net.ListenPacket("udp", addr) })
	if err != nil {
		t.Fatal(err)
	}
	defer squatter.Close()
	sendInVain(t, conn, []byte("secret"))
	refusals(t, c.Ursula, "upstream-foreign", 1)
	if _, err := dialUDP(t, addr).Write([]byte("end")); err != nil { // what came before is read before
		t.Fatal(err)
	}
	b := make([]byte, 64)
	if n, _, err := squatter.ReadFrom(b); err != nil || string(b[:n]) != "end" {
		t.Errorf("the squatter got %q, %v", b[:n], err)
	}
}

// TestUnknownOwner checks that an account that the host does not have is a problem, and that only
// root may serve in its place.
func TestUnknownOwner(t *testing.T) {
	c := newCluster(t, agenttest.Echo(t))
	c.Publish.Publish[0].User = "no-such-account"
	c.acceptUrsula(t)
	c.start(t)
	var r status.Report
	kit.Eventually(t, "the problem", func() bool {
		r = report(t, c.Ursula)
		return len(r.Problems) == 1
	})
	if want := "owner of the upstream of " + spiffe.ID(outline).String(); len(r.Problems[0]) < len(want) || r.Problems[0][:len(want)] != want {
		t.Errorf("problem %q", r.Problems[0])
	}
}
