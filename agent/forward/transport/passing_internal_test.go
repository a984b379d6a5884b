package transport

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/ipv4"

	"github.com/florete/florete/tests/kit"
)

// reader reads from a socket as quic-go does.
type reader struct {
	*socket
	ms []ipv4.Message
}

func newReader(t *testing.T, s *socket) reader {
	t.Helper()
	t.Cleanup(func() { s.Close() })
	r := reader{s, make([]ipv4.Message, 8)}
	for i := range r.ms {
		r.ms[i].Buffers, r.ms[i].OOB = [][]byte{make([]byte, 1500)}, make([]byte, 128)
	}
	return r
}

func (r reader) read(t *testing.T, want int) (got []ipv4.Message) {
	t.Helper()
	r.SetReadDeadline(time.Now().Add(kit.Patience))
	for len(got) < want {
		n, err := r.ReadBatch(r.ms, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range r.ms[:n] {
			m.Buffers = [][]byte{bytes.Clone(m.Buffers[0][:m.N])}
			got = append(got, m)
		}
	}
	return got
}

func (r reader) wantNothing(t *testing.T) {
	t.Helper()
	r.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := r.ReadBatch(r.ms, 0); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %d packets, %v", n, err)
	}
}

func id(t *testing.T, s *socket) []byte {
	t.Helper()
	c, err := s.own.GenerateConnectionID()
	if err != nil {
		t.Fatal(err)
	}
	return c.Bytes()
}

func short(id []byte, text string) []byte { return append(append([]byte{0x40}, id...), text...) }

func long(id []byte, text string) []byte {
	return append(append([]byte{0xc0, 0, 0, 0, 1, byte(len(id))}, id...), text...)
}

// next returns the socket that another process makes of those that s offers.
func next(t *testing.T, s *socket) *socket {
	t.Helper()
	files, err := s.offer()
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c, err := net.FilePacketConn(f)
	if err != nil {
		t.Fatal(err)
	}
	n, err := newSocket(c.(*net.UDPConn))
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*os.File{}
	for _, f := range files {
		g, ok := strings.CutPrefix(f.Name(), s.passPrefix())
		if !ok {
			t.Fatalf("file %q, want %q in front", f.Name(), s.passPrefix())
		}
		byName[g] = f
	}
	n.adopt(byName)
	s.drain()
	return n
}

// TestGenerations checks that each of three processes gets the packets of its connections, in order
// and with the sender's address, and that packets of unknown connections and of processes that are
// gone go to the newest.
func TestGenerations(t *testing.T) {
	bound, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	first, err := newSocket(bound)
	if err != nil {
		t.Fatal(err)
	}
	a := newReader(t, first)
	b := newReader(t, next(t, a.socket))
	c := newReader(t, next(t, b.socket))
	peer, err := net.DialUDP("udp", nil, bound.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	strange := []byte("strangers") // nine bytes
	for _, p := range [][]byte{
		short(id(t, a.socket), "to a"), long(strange, "initial"), short(id(t, b.socket), "to b"), short(id(t, c.socket), "to c"),
		long(id(t, a.socket), "handshake to a"), {0x40}, short(strange[:8], "to nobody"),
	} {
		if _, err := peer.Write(p); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct {
		reader
		want []string
	}{
		{c, []string{"initial", "to c", "\x40", "to nobody"}},
		{a, []string{"to a", "handshake to a"}},
		{b, []string{"to b"}},
	} {
		for i, m := range x.read(t, len(x.want)) {
			if !strings.HasSuffix(string(m.Buffers[0]), x.want[i]) || m.Addr.String() != peer.LocalAddr().String() {
				t.Errorf("packet %q of %s, want %q of %s", m.Buffers[0], m.Addr, x.want[i], peer.LocalAddr())
			}
		}
	}
	for _, r := range []reader{a, b, c} {
		r.wantNothing(t)
	}
	a.Close()
	for range 3 {
		if _, err := peer.Write(short(id(t, a.socket), "too late")); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range c.read(t, 3) {
		if !strings.HasSuffix(string(m.Buffers[0]), "too late") {
			t.Errorf("got %q", m.Buffers[0])
		}
	}
}
