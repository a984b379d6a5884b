package handover_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/agent/forward/handover"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// childEnv makes the test binary listen on the addresses it names: TCP, or UDP with "/udp" at the
// end. With "accept" in front of them it sends a word to one caller of each.
const childEnv = "FLORETE_TEST_LISTEN"

func TestMain(m *testing.M) {
	if what := os.Getenv(childEnv); what != "" {
		if err := child(strings.Fields(what)); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func child(args []string) error {
	s := handover.OpenStore()
	tcp, udp := map[netip.AddrPort]bool{}, map[netip.AddrPort]bool{}
	for _, a := range args[1:] {
		if text, ok := strings.CutSuffix(a, "/quic"); ok {
			udp, err := net.ResolveUDPAddr("udp", text) // as the forwarder does: of ":4610" there is no address
			if err != nil {
				return err
			}
			addr := udp.AddrPort()
			s.RetainForPeers([]netip.AddrPort{addr}, nil)
			c, err := s.ListenQUIC(addr)
			if err != nil {
				return err
			}
			fmt.Printf("%s has secret %s\n", c.LocalAddr(), s.Secret("test", fmt.Appendf(nil, "%08d", os.Getpid())))
			continue
		}
		if text, ok := strings.CutSuffix(a, "/tls"); ok {
			addr := netip.MustParseAddrPort(text)
			s.RetainForPeers(nil, []netip.AddrPort{addr})
			ln, err := s.ListenTLS(addr)
			if err != nil {
				return err
			}
			fmt.Println(ln.Addr())
			continue
		}
		text, isUDP := strings.CutSuffix(a, "/udp")
		addr := netip.MustParseAddrPort(text)
		serve, wanted := serveTCP, tcp
		if isUDP {
			serve, wanted = serveUDP, udp
		}
		wanted[addr] = true
		if err := serve(s, addr, args[0] == "accept"); err != nil {
			return err
		}
	}
	s.Retain(tcp, udp)
	return nil
}

func serveTCP(s *handover.Store, addr netip.AddrPort, accept bool) error {
	ln, err := s.Listen(addr)
	if err != nil || !accept {
		return err
	}
	c, err := ln.Accept()
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = fmt.Fprint(c, "hello")
	return err
}

func serveUDP(s *handover.Store, addr netip.AddrPort, accept bool) error {
	c, err := s.ListenUDP(addr)
	if err != nil || !accept {
		return err
	}
	_, from, err := c.ReadFrom(make([]byte, 16))
	if err != nil {
		return err
	}
	_, err = c.WriteTo([]byte("hello"), from)
	return err
}

// manager handles the stored files of a service as systemd does.
type manager struct {
	*testing.T
	conn *net.UnixConn
	held map[string]*os.File
	log  []string
}

func newManager(t *testing.T) *manager {
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &manager{T: t, conn: conn, held: map[string]*os.File{}}
}

// start runs a process with the stored files to its end, and handles its messages.
func (m *manager) start(what string) (output string) {
	m.Helper()
	self, err := os.Executable()
	if err != nil {
		m.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ exec "$0"`, self)
	var names []string
	for name, f := range m.held {
		names = append(names, name)
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	}
	cmd.Env = append(os.Environ(), childEnv+"="+what, "NOTIFY_SOCKET="+m.conn.LocalAddr().String(),
		fmt.Sprintf("LISTEN_FDS=%d", len(m.held)), "LISTEN_FDNAMES="+strings.Join(names, ":"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		m.Fatalf("%s: %v\n%s", what, err, out.String())
	}
	m.hear()
	return out.String()
}

// hear handles the messages that were sent.
func (m *manager) hear() {
	m.Helper()
	m.log = nil
	raw, err := m.conn.SyscallConn()
	if err != nil {
		m.Fatal(err)
	}
	b, oob := make([]byte, 4096), make([]byte, 4096)
	raw.Control(func(fd uintptr) {
		for {
			n, oobn, _, _, err := unix.Recvmsg(int(fd), b, oob, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
			if err != nil {
				return
			}
			m.take(string(b[:n]), oob[:oobn])
		}
	})
}

func (m *manager) take(message string, oob []byte) {
	m.log = append(m.log, message)
	do, name, _ := strings.Cut(message, "\nFDNAME=")
	switch do {
	case "FDSTORE=1":
		all, err := unix.ParseSocketControlMessage(oob)
		if err != nil || len(all) != 1 {
			m.Fatalf("%q came with %d messages: %v", message, len(all), err)
		}
		fds, err := unix.ParseUnixRights(&all[0])
		if err != nil || len(fds) != 1 {
			m.Fatalf("%q came with files %v: %v", message, fds, err)
		}
		m.held[name] = os.NewFile(uintptr(fds[0]), name)
	case "FDSTOREREMOVE=1":
		if m.held[name] == nil {
			return // as systemd does
		}
		m.held[name].Close()
		delete(m.held, name)
	default:
		m.Fatalf("message %q", message)
	}
}

// TestRestart checks that a caller who connects while no process runs is served by the next.
func TestRestart(t *testing.T) {
	m := newManager(t)
	a, b := agenttest.Loopback().String(), agenttest.Loopback().String()
	m.start("listen " + a + " " + b)
	if len(m.held) != 2 || m.held["tcp-"+strings.ReplaceAll(a, ":", "-")] == nil {
		t.Fatalf("held %v", m.held)
	}
	conn, err := net.Dial("tcp", a)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	m.start("accept " + a)
	conn.SetReadDeadline(time.Now().Add(kit.Patience))
	if text, err := io.ReadAll(conn); err != nil || string(text) != "hello" {
		t.Errorf("got %q, %v", text, err)
	}
	if len(m.log) != 1 || !strings.HasPrefix(m.log[0], "FDSTOREREMOVE=1\n") || len(m.held) != 1 {
		t.Errorf("messages %q, held %v", m.log, m.held)
	}
	if c, err := net.Dial("tcp", b); err == nil {
		c.Close()
		t.Error("an address that is no longer wanted takes connections")
	}
}

// TestRestartOverUDP checks that a datagram sent while no process runs is received by the next. TCP
// at the same address is independent.
func TestRestartOverUDP(t *testing.T) {
	m := newManager(t)
	a, b := agenttest.Loopback().String(), agenttest.Loopback().String()
	m.start("listen " + a + "/udp " + a + " " + b + "/udp")
	if len(m.held) != 3 || m.held["udp-"+strings.ReplaceAll(a, ":", "-")] == nil {
		t.Fatalf("held %v", m.held)
	}
	conn, err := net.Dial("udp", a)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("anybody?")); err != nil {
		t.Fatal(err)
	}
	m.start("accept " + a + "/udp")
	conn.SetReadDeadline(time.Now().Add(kit.Patience))
	text := make([]byte, 16)
	if n, err := conn.Read(text); err != nil || string(text[:n]) != "hello" {
		t.Errorf("got %q, %v", text[:n], err)
	}
	if len(m.log) != 2 || len(m.held) != 1 {
		t.Errorf("messages %q, held %v", m.log, m.held)
	}
	for _, addr := range []string{a + "/tcp", b + "/udp"} {
		hostport, network, _ := strings.Cut(addr, "/")
		var ln interface{ Close() error }
		if network == "tcp" {
			ln, err = net.Listen("tcp", hostport)
		} else {
			ln, err = net.ListenPacket("udp", hostport)
		}
		if err != nil {
			t.Errorf("%s is no longer wanted: %v", addr, err)
			continue
		}
		ln.Close()
	}
}

// TestRestartOverQUIC checks that the next process gets the socket of other hosts, at all addresses
// or one, and a secret, and that local listeners come and go independently.
func TestRestartOverQUIC(t *testing.T) {
	for _, ip := range []string{"", "0.0.0.0", "[::]", agenttest.LoopbackIP.String()} {
		m := newManager(t)
		free, err := net.ListenPacket("udp", ip+":0")
		if err != nil {
			t.Logf("NOT RUN: %s: %v", ip, err)
			continue
		}
		free.Close()
		at := fmt.Sprintf("%s:%d/quic", ip, kit.Port())
		first := m.start("listen " + at)
		if len(m.held) != 2 {
			t.Fatalf("held %v", m.held)
		}
		if second := m.start("listen " + at); second != first {
			t.Errorf("%q then, %q before", second, first)
		}
		m.start("listen")
		if len(m.held) != 2 {
			t.Errorf("held %v after listeners were dropped", m.held)
		}
		m.start("listen " + agenttest.Loopback().String() + "/quic")
		if len(m.held) != 2 || m.held["secret-test"] == nil {
			t.Errorf("held %v after it moved", m.held)
		}
	}
}

// TestTLS checks that the TCP listener for peers is not mixed up with a local listener of the same
// address, and that it is dropped when its address changes.
func TestTLS(t *testing.T) {
	m := newManager(t)
	at := agenttest.Loopback().String()
	m.start("listen " + at + "/tls")
	if len(m.held) != 1 {
		t.Fatalf("held %v", m.held)
	}
	m.start("listen " + at + "/tls") // would fail if it were bound again
	m.start("listen " + agenttest.Loopback().String())
	if len(m.held) != 2 {
		t.Errorf("held %v beside a local listener", m.held)
	}
	m.start("listen " + agenttest.Loopback().String() + "/tls")
	if len(m.held) != 1 {
		t.Errorf("held %v after it moved", m.held)
	}
}

// TestHold checks that a held connection stays open after its process has closed it.
func TestHold(t *testing.T) {
	m := newManager(t)
	t.Setenv("NOTIFY_SOCKET", m.conn.LocalAddr().String())
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[1])
	file := os.NewFile(uintptr(pair[0]), "")
	conn, err := net.FileConn(file)
	if err != nil {
		t.Fatal(err)
	}
	file.Close()
	err = handover.Hold("ask-1", conn.(*net.UnixConn))
	conn.Close()
	m.hear()
	if err != nil || m.held["ask-1"] == nil {
		t.Fatalf("%v: messages %q, held %v", err, m.log, m.held)
	}
	if _, err := unix.Write(pair[1], []byte("x")); err != nil {
		t.Errorf("the other end: %v", err)
	}
	if err := handover.Drop("ask-1"); err != nil {
		t.Fatal(err)
	}
	if m.hear(); len(m.held) != 0 {
		t.Errorf("held %v", m.held)
	}
}

// TestCloseEndsAccept checks that a socket that systemd holds too can be closed like any other.
func TestCloseEndsAccept(t *testing.T) {
	m := newManager(t)
	t.Setenv("NOTIFY_SOCKET", m.conn.LocalAddr().String())
	var s handover.Store
	ln, err := s.Listen(netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := ln.Accept()
		ended <- err
	}()
	kit.Parked(t, 1, ".Accept")
	ln.Close()
	select {
	case err := <-ended:
		if !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	case <-time.After(kit.Patience):
		t.Fatal("Accept goes on")
	}
}

func TestZeroStore(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	var s handover.Store
	ln, err := s.Listen(netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	s.Retain(nil, nil)
	if _, err := s.Listen(netip.MustParseAddrPort(ln.Addr().String())); err == nil {
		t.Error("an address was taken twice")
	}
	ln.Close()
}
