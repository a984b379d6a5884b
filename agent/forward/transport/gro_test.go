package transport

import (
	"bytes"
	"net"
	"testing"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"github.com/florete/florete/tests/kit"
)

// sockets returns two connected sockets. Datagrams that the second one sends arrive at the first.
func sockets(t *testing.T, ip string) (*merging, *net.UDPConn) {
	t.Helper()
	to, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(ip)})
	if err != nil {
		t.Skipf("NOT RUN: no %s here: %v", ip, err)
	}
	t.Cleanup(func() { to.Close() })
	to.SetDeadline(time.Now().Add(kit.Patience))
	from, err := net.DialUDP("udp", nil, to.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { from.Close() })
	merged, err := newMerging(to)
	if err != nil {
		t.Fatal(err)
	}
	return merged, from
}

// segmented makes a socket divide written data into datagrams of the given size.
func segmented(t *testing.T, c *net.UDPConn, size int) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if e := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_SEGMENT, size) }); e != nil || err != nil {
		t.Fatal(e, err)
	}
}

// receive returns n datagrams, read in batches of eight as quic-go does.
func receive(t *testing.T, c *merging, from *net.UDPConn, n int) (all [][]byte) {
	t.Helper()
	for len(all) < n {
		messages := make([]ipv4.Message, 8)
		for i := range messages {
			messages[i] = ipv4.Message{Buffers: [][]byte{make([]byte, 1500)}, OOB: make([]byte, 128)}
		}
		got, err := c.ReadBatch(messages, 0)
		if err != nil {
			t.Fatalf("%v after %d datagrams, want %d", err, len(all), n)
		}
		for _, m := range messages[:got] {
			if m.Addr.String() != from.LocalAddr().String() {
				t.Errorf("a datagram is from %s, want %s", m.Addr, from.LocalAddr())
			}
			all = append(all, m.Buffers[0][:m.N])
		}
	}
	return all
}

// TestDatagramsAreWhatWasSent includes datagrams that do not fit in a batch, and shorter ones.
func TestDatagramsAreWhatWasSent(t *testing.T) {
	for _, ip := range []string{"127.0.0.1", "::1"} {
		t.Run(ip, func(t *testing.T) {
			to, from := sockets(t, ip)
			const size, whole = 1000, 20
			sent := make([]byte, size*whole+7)
			for i := range sent {
				sent[i] = byte(i / 9)
			}
			segmented(t, from, size)
			if _, err := from.Write(sent); err != nil {
				t.Fatal(err)
			}
			segmented(t, from, 0)
			for _, single := range []string{"", "alone"} {
				if _, err := from.Write([]byte(single)); err != nil {
					t.Fatal(err)
				}
			}
			got := receive(t, to, from, whole+3)
			if len(got) != whole+3 {
				t.Fatalf("%d datagrams, want %d", len(got), whole+3)
			}
			for i, b := range got[:whole+1] {
				if want := sent[i*size : min(len(sent), (i+1)*size)]; !bytes.Equal(b, want) {
					t.Errorf("datagram %d has %d bytes, want %d as they were sent", i, len(b), len(want))
				}
			}
			if last := got[whole+1:]; len(last[0]) != 0 || string(last[1]) != "alone" {
				t.Errorf("behind them are %q, want an empty one and one alone", last)
			}
		})
	}
}

// TestMerged checks that the kernel does merge datagrams; otherwise the type would be useless.
func TestMerged(t *testing.T) {
	to, from := sockets(t, "127.0.0.1")
	segmented(t, from, 1000)
	if _, err := from.Write(make([]byte, 5000)); err != nil {
		t.Fatal(err)
	}
	if n, _, err := to.UDPConn.ReadFromUDPAddrPort(make([]byte, 1<<16)); err != nil || n != 5000 {
		t.Errorf("%d bytes at once, %v, want 5000", n, err)
	}
}
