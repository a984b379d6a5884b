package forward_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
	"golang.org/x/net/ipv4"

	"github.com/florete/florete/agent/forward"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// entered returns a cluster in which strangers may connect to Outline at an entry of Laptop. The
// agents are not running.
func entered(t *testing.T, upstream string, protocol document.Protocol) (c *cluster, e *document.Entry) {
	t.Helper()
	c = newCluster(t, upstream)
	c.Publish.Publish[0].Protocol, c.Reach.Reach[0].Protocol = protocol, protocol
	c.Publish.Publish[0].Allow = []document.Allow{{ID: laptop}}
	c.Reach.Reach[0].Callers = []spiffe.ID{laptop}
	c.Reach.Entries = []document.Entry{{Listen: agenttest.Loopback().String(), Protocol: protocol, ID: outline}}
	c.acceptUrsula(t)
	c.acceptLaptop(t)
	return c, &c.Reach.Entries[0]
}

// closes reports whether a connection to addr ends without an answer.
func closes(t *testing.T, addr string) bool {
	t.Helper()
	p, err := net.Dial("tcp", addr)
	if errors.Is(err, syscall.ECONNRESET) { // the reset can come before connect has returned
		return true
	} else if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.SetDeadline(time.Now().Add(kit.Patience))
	io.WriteString(p, "hello")
	_, err = p.Read(make([]byte, 1))
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

func TestEntry(t *testing.T) {
	c, e := entered(t, agenttest.Echo(t), document.TCP)
	c.start(t)
	if !reaches(e.Listen) {
		t.Fatal("a stranger does not reach the service")
	}
	if reaches(c.Local) {
		t.Error("a process that is no caller reaches the service by its local listener")
	}
	open := dial(t, e.Listen)
	if _, err := open.Write([]byte("a")); err != nil {
		t.Fatal(err)
	}
	if _, err := open.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}

	e.From = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	c.acceptLaptop(t)
	if _, err := open.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection is still open that a new manifest denies: %v", err)
	}
	if !closes(t, e.Listen) {
		t.Error("a caller from another network reaches the service")
	}
	refusals(t, c.Laptop, "not-admitted", 1)

	e.From = append(e.From, netip.PrefixFrom(agenttest.LoopbackIP, 32))
	e.From[1] = netip.MustParsePrefix("127.0.0.0/8")
	c.acceptLaptop(t)
	if !reaches(e.Listen) {
		t.Error("a caller from a network of the entry does not reach the service")
	}

	c.Reach.Entries = nil
	c.acceptLaptop(t)
	if p, err := net.Dial("tcp", e.Listen); err == nil {
		p.Close()
		t.Error("the listener is open without an entry")
	}
}

// TestEntryOnAllAddresses checks that the entry and the local listener of a service have the same
// port. The entry appears while the local listener is open, and is open before a new one.
func TestEntryOnAllAddresses(t *testing.T) {
	port := uint16(kit.Port())
	c, e := entered(t, agenttest.Echo(t), document.TCP)
	me := document.Caller{ID: alice, UIDs: c.Reach.Callers[0].UIDs}
	c.Reach.Callers, c.Reach.Reach[0].Callers = []document.Caller{me}, []spiffe.ID{laptop, alice}
	c.Publish.Publish[0].Allow = []document.Allow{{ID: laptop}, {ID: alice}}
	c.Reach.Reach[0].Listen = netip.AddrPortFrom(agenttest.LoopbackIP, port)
	c.acceptUrsula(t)
	c.acceptLaptop(t)
	c.start(t)
	e.Listen = fmt.Sprintf(":%d", port)
	c.acceptLaptop(t)
	by := func(addr string) string {
		t.Helper()
		before := report(t, c.Laptop).Refusals["unknown-caller"]
		if !reaches(addr) {
			t.Errorf("%s does not lead to the service, after %d refusals", addr, before)
		}
		return addr
	}
	by(fmt.Sprintf("127.0.0.1:%d", port))
	by(fmt.Sprintf("[::1]:%d", port))
	by(c.Reach.Reach[0].Listen.String())

	// Without callers, only the local listener refuses.
	c.Reach.Reach[0].Callers = []spiffe.ID{laptop}
	c.Reach.Reach[0].Listen = netip.AddrPortFrom(agenttest.LoopbackIP.Next(), port)
	c.acceptLaptop(t)
	by(fmt.Sprintf("127.0.0.1:%d", port))
	if reaches(c.Reach.Reach[0].Listen.String()) {
		t.Error("the entry takes the connections of the local listener")
	}
}

// TestEntryAnnouncesStrangers checks that a service gets the address of a stranger, and that only
// the entrances of the service may state it.
func TestEntryAnnouncesStrangers(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	c, e := entered(t, ln.Addr().String(), document.TCP)
	c.Publish.Publish[0].Identity, c.Publish.Publish[0].Entrances = document.ProxyV2, []spiffe.ID{laptop}
	e.Announce = true
	c.acceptUrsula(t)
	c.acceptLaptop(t)
	c.start(t)
	p := dial(t, e.Listen)
	const forged = "PROXY TCP4 198.51.100.1 198.51.100.2 1 2\r\nhello"
	if _, err := io.WriteString(p, forged); err != nil {
		t.Fatal(err)
	}
	p.CloseWrite()
	service, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	service.SetDeadline(time.Now().Add(kit.Patience))
	r := bufio.NewReader(service)
	h, err := proxyproto.Read(r)
	if err != nil {
		t.Fatal(err)
	}
	if from, to, ok := h.TCPAddrs(); !ok || from.String() != p.LocalAddr().String() || to.String() != e.Listen {
		t.Errorf("from %s to %s, want %s and %s", from, to, p.LocalAddr(), e.Listen)
	}
	tlvs, err := h.TLVs()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range tlvs {
		if v.Type == spiffe.ProxyCaller && string(v.Value) != laptop.String() {
			t.Errorf("the caller is %q, want %s", v.Value, laptop)
		}
	}
	if rest, err := io.ReadAll(r); err != nil || string(rest) != forged {
		t.Errorf("then came %q, %v, want what the stranger sent", rest, err)
	}

	c.Publish.Publish[0].Entrances = []spiffe.ID{kit.ID("node/other")}
	c.acceptUrsula(t)
	if !closes(t, e.Listen) {
		t.Error("a node that is no entrance states the address of a stranger")
	}
	refusals(t, c.Ursula, "denied", 1)
}

// TestEntriesByServerName checks that one port leads to several services by the TLS server name,
// and that the TLS connection ends at the service.
func TestEntriesByServerName(t *testing.T) {
	cert := kit.NewCA().Issue(outline, time.Hour)
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{*cert}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				io.Copy(conn, conn)
			}()
		}
	}()
	c, e := entered(t, ln.Addr().String(), document.TCP)
	e.ServerNames = []string{"mq.example.org", "queue.example.org"}
	c.acceptLaptop(t)
	c.start(t)
	handshake := func(name string, hello ...int) error {
		p := dial(t, e.Listen)
		defer p.Close()
		client := tls.Client(slow{p, hello}, &tls.Config{ServerName: name, InsecureSkipVerify: true, MinVersion: tls.VersionTLS13})
		if err := client.Handshake(); err != nil {
			return err
		}
		if _, err := client.Write([]byte("a")); err != nil {
			return err
		}
		_, err := client.Read(make([]byte, 1))
		return err
	}
	for _, name := range e.ServerNames {
		if err := handshake(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := handshake("MQ.example.org", 1, 3, 5, 40, 100); err != nil {
		t.Errorf("a name in upper case and in pieces: %v", err)
	}
	if err := handshake("other.example.org"); err == nil || !strings.Contains(err.Error(), "unrecognized name") {
		t.Errorf("another name: %v, want the alert unrecognized_name", err)
	}
	if !closes(t, e.Listen) {
		t.Error("a connection without TLS leads to the service")
	}
	refusals(t, c.Laptop, "unknown-server-name", 2)
}

// slow is a connection on which the first write is sent in pieces that end at the given offsets.
type slow struct {
	net.Conn
	at []int
}

func (s slow) Write(b []byte) (n int, err error) {
	for _, at := range s.at {
		if at > n && at < len(b) {
			m, err := s.Conn.Write(b[n:at])
			if n += m; err != nil {
				return n, err
			}
			time.Sleep(time.Millisecond)
		}
	}
	m, err := s.Conn.Write(b[n:])
	return n + m, err
}

// TestEntryLimits checks the limit of connections for each address, and the access log.
func TestEntryLimits(t *testing.T) {
	c, e := entered(t, agenttest.Echo(t), document.TCP)
	e.Limits, e.AccessLog, e.Outside = document.Limits{Connections: 1}, document.AccessFull, "scanner"
	c.acceptLaptop(t)
	var log lines
	runWith(t, forward.Config{Layout: c.Ursula.Layout, Socket: c.Ursula.Socket()})
	runWith(t, forward.Config{Layout: c.Laptop.Layout, Socket: c.Laptop.Socket(), Access: &log})
	var first *net.TCPConn
	kit.Eventually(t, "the entry to lead to the service", func() bool {
		p, err := net.Dial("tcp", e.Listen)
		if err != nil {
			return false
		}
		t.Cleanup(func() { p.Close() })
		first = p.(*net.TCPConn)
		return agenttest.Ping(first) == nil
	})
	if !closes(t, e.Listen) {
		t.Error("an address has two connections, which is more than its limit")
	}
	refusals(t, c.Laptop, "over-limit", 1)
	from := first.LocalAddr().String()
	first.Close()
	kit.Eventually(t, "the connection in the access log", func() bool {
		for _, a := range log.entries(t) {
			if a.From == from {
				if a.Caller != laptop || a.Outside != "scanner" || a.Service != outline || a.Sent != 1 || a.Received != 1 || a.End != "done" {
					t.Errorf("access log: %+v", a)
				}
				return true
			}
		}
		return false
	})
	kit.Eventually(t, "room for another connection", func() bool { return reaches(e.Listen) })
}

// TestEntryForDatagrams checks sessions of strangers over UDP, also on all addresses of the host.
func TestEntryForDatagrams(t *testing.T) {
	upstream, _ := echoUDP(t)
	c, e := entered(t, upstream, document.UDP)
	c.start(t)
	p := dialUDP(t, e.Listen)
	if err := exchange(p, []byte("ping")); err != nil {
		t.Fatal(err)
	}
	port := kit.Port()
	e.Listen = fmt.Sprintf(":%d", port)
	c.acceptLaptop(t)
	// A connected socket accepts answers from the address that it called only.
	for _, to := range []string{"127.0.0.1", "127.0.0.2", "[::1]"} {
		if err := exchange(dialUDP(t, fmt.Sprintf("%s:%d", to, port)), []byte("ping")); err != nil {
			t.Errorf("%s: %v", to, err)
		}
	}
	e.From = []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}
	c.acceptLaptop(t)
	if err := exchangeIn(time.Second, dialUDP(t, fmt.Sprintf("127.0.0.1:%d", port)), []byte("ping")); err == nil {
		t.Error("a caller from another network reaches the service")
	}
	refusals(t, c.Laptop, "not-admitted", 1)
}

// TestFloodOfDatagrams checks that datagrams from many forged addresses end no session in which a
// stranger went on after an answer, even if that session has been idle for longest.
func TestFloodOfDatagrams(t *testing.T) {
	upstream, senders := echoUDP(t)
	c, e := entered(t, upstream, document.UDP)
	c.start(t)
	stranger := dialUDP(t, e.Listen)
	for range 2 {
		if err := exchange(stranger, []byte("a stranger")); err != nil {
			t.Fatal(err)
		}
	}
	session := (<-senders).String()
	flood, err := net.ListenUDP("udp4", &net.UDPAddr{})
	if err != nil {
		t.Fatal(err)
	}
	defer flood.Close()
	to, err := net.ResolveUDPAddr("udp4", e.Listen)
	if err != nil {
		t.Fatal(err)
	}
	const most = 1024
	for i := range most + 50 {
		from := (&ipv4.ControlMessage{Src: net.IPv4(127, 9, byte(i>>8), byte(i))}).Marshal()
		if _, _, err := flood.WriteMsgUDP([]byte("flood"), from, to); err != nil {
			t.Fatal(err)
		}
		flood.SetReadDeadline(time.Now().Add(kit.Patience))
		if _, err := flood.Read(make([]byte, 16)); err != nil {
			t.Fatalf("sender %d: %v", i, err)
		}
	}
	kit.Eventually(t, "as many sessions as an entry may have", func() bool { return report(t, c.Laptop).Connections <= most })
	if err := exchange(stranger, []byte("still there")); err != nil {
		t.Fatal(err)
	}
	last := ""
	for len(senders) > 0 {
		last = (<-senders).String()
	}
	if last != session {
		t.Error("the flood ended the session of a stranger that went on")
	}
}
