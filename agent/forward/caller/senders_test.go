package caller_test

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/agent/forward/caller"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// receiver finds the senders of the datagrams that it receives.
type receiver struct{ *net.UDPConn }

func receive(t *testing.T, addr string) *receiver {
	t.Helper()
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(addr)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetReadDeadline(time.Now().Add(kit.Patience))
	return &receiver{c}
}

// next returns the owner of the next datagram's source address after then has run.
func (r *receiver) next(t *testing.T, then func(from netip.AddrPort)) (uint32, error) {
	t.Helper()
	_, from, err := r.ReadFromUDPAddrPort(make([]byte, 16))
	if err != nil {
		t.Fatal(err)
	}
	then(from)
	return caller.SenderUID(from, r.LocalAddr().(*net.UDPAddr).AddrPort())
}

func nothing(netip.AddrPort) {}

func (r *receiver) wantMe(t *testing.T, what string) {
	t.Helper()
	if uid, err := r.next(t, nothing); err != nil || uid != uint32(os.Getuid()) {
		t.Errorf("%s: uid %d, %v, want %d", what, uid, err, os.Getuid())
	}
}

func TestSendersOfThisProcess(t *testing.T) {
	for _, addr := range here(t, "127.0.0.1:0", "127.7.7.7:0", "[::1]:0") {
		r := receive(t, addr)
		connected, err := net.Dial("udp", r.LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer connected.Close()
		connected.Write([]byte("x"))
		r.wantMe(t, "connected to "+addr)
		for _, from := range here(t, ":0", "127.0.0.1:0", "[::1]:0") {
			free, err := net.ListenPacket("udp", from)
			if err != nil {
				t.Fatal(err)
			}
			defer free.Close()
			if _, err := free.WriteTo([]byte("x"), r.LocalAddr()); err == nil {
				r.wantMe(t, from+" to "+addr)
			}
		}
	}
}

// TestSenderOnAnIPv6Socket sends to IPv4 as some runtimes do.
func TestSenderOnAnIPv6Socket(t *testing.T) {
	r := receive(t, "127.0.0.1:0")
	s := inet6(t, unix.SOCK_DGRAM)
	to := &unix.SockaddrInet6{Port: r.LocalAddr().(*net.UDPAddr).Port, Addr: [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}}
	if err := unix.Sendto(s, []byte("x"), 0, to); err != nil {
		t.Fatal(err)
	}
	r.wantMe(t, "unconnected")
	if err := unix.Connect(s, to); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Write(s, []byte("x")); err != nil {
		t.Fatal(err)
	}
	r.wantMe(t, "connected")
}

// TestSenderOfAnotherUser uses a process of another user that waits for the answer.
func TestSenderOfAnotherUser(t *testing.T) {
	agenttest.Root(t, "can start a process of another user")
	const other = 64999
	r := receive(t, "127.0.0.1:0")
	done := make(chan error, 1)
	go func() { done <- agenttest.SendAs(t, other, r.LocalAddr().String()) }()
	var child netip.AddrPort
	uid, err := r.next(t, func(from netip.AddrPort) { child = from })
	if err != nil || uid != other {
		t.Errorf("uid %d, %v, want %d", uid, err, other)
	}
	r.WriteToUDPAddrPort([]byte("x"), child)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestSenderIsGone checks that a sender is reported as gone, even if TCP, or a socket connected to
// another address, has its source address.
func TestSenderIsGone(t *testing.T) {
	for name, then := range map[string]func(t *testing.T, from netip.AddrPort){
		"nobody": func(*testing.T, netip.AddrPort) {},
		"TCP":    func(t *testing.T, from netip.AddrPort) { listen(t, from.String()) },
		"a socket with another peer": func(t *testing.T, from netip.AddrPort) {
			elsewhere := receive(t, "127.0.0.1:0").LocalAddr().(*net.UDPAddr)
			c, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(from), elsewhere)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := receive(t, "127.0.0.1:0")
			// From an address at which no other test has the port over TCP.
			own := net.Dialer{LocalAddr: &net.UDPAddr{IP: net.IPv4(127, 77, 0, 1)}}
			c, err := own.DialContext(t.Context(), "udp", r.LocalAddr().String())
			if err != nil {
				t.Fatal(err)
			}
			c.Write([]byte("x"))
			uid, err := r.next(t, func(from netip.AddrPort) {
				c.Close()
				then(t, from)
			})
			if !errors.Is(err, caller.ErrGone) {
				t.Errorf("uid %d, %v, want ErrGone", uid, err)
			}
		})
	}
}
