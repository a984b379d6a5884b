package caller_test

import (
	"errors"
	"net"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/agent/forward/caller"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

func listen(t *testing.T, addr string) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}

func accept(t *testing.T, ln net.Listener) *net.TCPConn {
	t.Helper()
	ln.(*net.TCPListener).SetDeadline(time.Now().Add(kit.Patience))
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

// here returns the addresses without those of IPv6 if this machine has no IPv6.
func here(t *testing.T, addrs ...string) []string {
	t.Helper()
	ln, err := net.ListenPacket("udp", "[::1]:0")
	if err == nil {
		ln.Close()
		return addrs
	}
	t.Logf("NOT RUN: IPv6: %v", err)
	return slices.DeleteFunc(addrs, func(a string) bool { return strings.HasPrefix(a, "[") })
}

// inet6 returns an IPv6 socket that accepts IPv4-mapped addresses.
func inet6(t *testing.T, kind int) int {
	t.Helper()
	s, err := unix.Socket(unix.AF_INET6, kind|unix.SOCK_CLOEXEC, 0)
	if errors.Is(err, unix.EAFNOSUPPORT) {
		t.Skipf("NOT RUN: IPv6: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(s) })
	return s
}

func TestUIDOfThisProcess(t *testing.T) {
	for _, addr := range here(t, "127.0.0.1:0", "[::1]:0") {
		ln := listen(t, addr)
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		p, err := caller.FindProcess(accept(t, ln))
		if err != nil || p.UID != uint32(os.Getuid()) {
			t.Errorf("%s: uid %d, %v, want %d", addr, p.UID, err, os.Getuid())
		}
	}
}

// TestUIDOfAnIPv4ConnectionOnAnIPv6Socket connects to IPv4 as some runtimes do.
func TestUIDOfAnIPv4ConnectionOnAnIPv6Socket(t *testing.T) {
	ln := listen(t, "127.0.0.1:0")
	s := inet6(t, unix.SOCK_STREAM)
	to := &unix.SockaddrInet6{Port: ln.Addr().(*net.TCPAddr).Port, Addr: [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}}
	if err := unix.Connect(s, to); err != nil {
		t.Fatal(err)
	}
	p, err := caller.FindProcess(accept(t, ln))
	if err != nil || p.UID != uint32(os.Getuid()) {
		t.Errorf("uid %d, %v, want %d", p.UID, err, os.Getuid())
	}
}

// TestUIDOfAnotherUser runs a process under another uid.
func TestUIDOfAnotherUser(t *testing.T) {
	agenttest.Root(t, "can start a process of another user")
	const other = 64999
	ln := listen(t, "127.0.0.1:0")
	done := make(chan error, 1)
	go func() { done <- agenttest.DialAs(t, other, ln.Addr().String()) }()
	c := accept(t, ln)
	p, err := caller.FindProcess(c)
	if err != nil || p.UID != other {
		t.Errorf("uid %d, %v, want %d", p.UID, err, other)
	}
	b := make([]byte, 1)
	c.Read(b)
	c.Write(b)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestGoneIsNotRoot checks that uid 0, which the kernel reports for a socket that no process holds,
// is not taken for root.
func TestGoneIsNotRoot(t *testing.T) {
	ln := listen(t, "127.0.0.1:0")
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	end := accept(t, ln)
	end.SetDeadline(time.Now().Add(kit.Patience))
	end.Read(make([]byte, 1)) // the client's FIN
	if p, err := caller.FindProcess(end); !errors.Is(err, caller.ErrGone) {
		t.Errorf("uid %d, %v, want ErrGone", p.UID, err)
	}
	end.Close() // now the client's side is in TIME_WAIT
	if p, err := caller.FindProcess(end); !errors.Is(err, caller.ErrGone) {
		t.Errorf("uid %d, %v, want ErrGone", p.UID, err)
	}
}

// TestNextAtTheSameAddress checks that bytes that one user sent before a reset are not attributed
// to the user who connects from the same address next.
func TestNextAtTheSameAddress(t *testing.T) {
	ln := listen(t, "127.0.0.1:0")
	from := net.TCPAddrFromAddrPort(agenttest.Loopback())
	dial := func() *net.TCPConn {
		c, err := (&net.Dialer{LocalAddr: from}).Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c.(*net.TCPConn)
	}
	first := dial()
	if _, err := first.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	first.SetLinger(0)
	first.Close()
	dial()

	c := accept(t, ln)
	if p, err := caller.FindProcess(c); !errors.Is(err, caller.ErrGone) {
		t.Errorf("uid %d, %v, want ErrGone", p.UID, err)
	}
	if n, err := c.Read(make([]byte, 1)); n != 1 {
		t.Errorf("nothing was there to be taken for another's: %v", err)
	}
	if p, err := caller.FindProcess(accept(t, ln)); err != nil || p.UID != uint32(os.Getuid()) {
		t.Errorf("the next one: uid %d, %v, want %d", p.UID, err, os.Getuid())
	}
}

func TestTable(t *testing.T) {
	alice, node, outline := kit.ID("user/alice"), kit.ID("node/laptop"), kit.ID("service/outline")
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.ParseUint(me.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	table, problems := caller.NewTable([]document.Caller{
		{ID: alice, UIDs: []uint32{1000, 1001}},
		{ID: outline, Users: []string{"no-such-account", me.Username}},
		{ID: node, UIDs: []uint32{1001, uint32(uid)}},
	})
	if len(problems) != 1 || !strings.Contains(problems[0].Error(), outline.String()) || !strings.Contains(problems[0].Error(), "no-such-account") {
		t.Errorf("problems %v, want one about no-such-account", problems)
	}
	for want, uids := range map[spiffe.ID][]uint32{alice: {1000, 1001}, outline: {uint32(uid)}, {}: {999}} {
		for _, u := range uids {
			if got, _ := table.Identity(caller.Process{UID: u}); got != want {
				t.Errorf("uid %d is %s, want %s", u, got, want)
			}
		}
	}
	for _, x := range []struct {
		uid  uint32
		id   spiffe.ID
		want bool
	}{{1001, alice, true}, {1001, node, true}, {1000, node, false}, {uint32(uid), node, true}, {0, alice, false}} {
		if got := table.MayAct(caller.Process{UID: x.uid}, x.id); got != x.want {
			t.Errorf("uid %d may act as %s: %v", x.uid, x.id, got)
		}
	}
}
