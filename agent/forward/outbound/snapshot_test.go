package outbound_test

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// accepted returns a connection to alice's SOCKS5 listener on which no request was sent yet.
func (s *servers) accepted(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.SOCKS[agenttest.Alice])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(kit.Patience))
	c.Write([]byte{5, 1, 0})
	if _, err := io.ReadFull(c, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	return c
}

// request requests a connection to outline and returns the reply's code.
func request(t *testing.T, c net.Conn) byte {
	t.Helper()
	const name = "outline." + kit.Domain + ".rete"
	c.Write(binary.BigEndian.AppendUint16(append([]byte{5, 1, 0, 3, byte(len(name))}, name...), 80))
	var reply [10]byte
	if _, err := io.ReadFull(c, reply[:]); err != nil {
		t.Fatal(err)
	}
	return reply[1]
}

// TestSnapshotOfAccept checks that a connection is dialled by the manifest that was in force when
// it was accepted, whatever names and endpoints the next one has.
func TestSnapshotOfAccept(t *testing.T) {
	s := start(t, 0)
	before := s.accepted(t)
	reach := s.Reach.Reach[0]
	reach.Endpoints = []document.Addresses{{agenttest.Loopback().String()}} // no forwarder listens there
	s.Reach.Reach = []document.Reachable{reach}
	s.apply(t)
	if code := request(t, before); code != 0 {
		t.Fatalf("reply %d, want 0: the endpoint is that of the manifest at accept", code)
	}
	if err := agenttest.Ping(before); err != nil {
		t.Error(err)
	}
}

// TestNewerManifestDenies checks that a connection ends nevertheless if a newer manifest does not
// allow it.
func TestNewerManifestDenies(t *testing.T) {
	s := start(t, 0)
	before := s.accepted(t)
	s.Reach.Reach[0].Callers = []spiffe.ID{agenttest.Bob}
	s.apply(t)
	if code := request(t, before); code != 2 {
		t.Fatalf("reply %d, want 2", code)
	}
	if n := s.counted.Summary().Refusals["denied"]; n != 1 {
		t.Errorf("%d refusals, want 1", n)
	}
}
