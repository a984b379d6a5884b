package caller_test

import (
	"net"
	"os"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/internal/sockdiag"
)

// TestOneSocketForAllLookups checks that concurrent lookups share one netlink socket, and that each
// gets its own answer.
func TestOneSocketForAllLookups(t *testing.T) {
	found := map[sockdiag.Listener]string{}
	var lookups sync.WaitGroup
	for range 16 {
		ln := listen(t, "127.0.0.1:0")
		addr := ln.Addr().(*net.TCPAddr).AddrPort()
		own, err := sockdiag.FindListener(addr)
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := found[own]; ok {
			t.Fatalf("%s and %s are the same socket", addr, other)
		}
		found[own] = addr.String()
		lookups.Go(func() {
			for range 100 {
				if again, err := sockdiag.FindListener(addr); err != nil || again != own {
					t.Errorf("%s: %v, %v, want %v", addr, again, err, own)
				}
			}
		})
	}
	lookups.Wait()
	r := receive(t, "127.0.0.1:0")
	c, err := net.Dial("udp", r.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Write([]byte("x"))
	r.wantMe(t, "over UDP")
	if n := netlinkSockets(t); n != 1 {
		t.Errorf("%d netlink sockets are open, want 1", n)
	}
}

func netlinkSockets(t *testing.T) (n int) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		number, err := strconv.Atoi(fd.Name())
		if err != nil {
			t.Fatal(err)
		}
		if domain, err := unix.GetsockoptInt(number, unix.SOL_SOCKET, unix.SO_DOMAIN); err == nil && domain == unix.AF_NETLINK {
			n++
		}
	}
	return n
}
