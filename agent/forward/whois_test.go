package forward_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/agent/whois"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// asking starts a cluster whose service, of the account daemon, asks about each connection as soon
// as it accepts it.
func asking(t *testing.T, ask func(socket string, from, to netip.AddrPort) string) *cluster {
	t.Helper()
	agenttest.Root(t, "can ask as another account")
	sockets := make(chan string, 1)
	upstream := agenttest.Upstream(t, func(c *net.TCPConn) {
		from, to := c.RemoteAddr().(*net.TCPAddr).AddrPort(), c.LocalAddr().(*net.TCPAddr).AddrPort()
		socket := <-sockets
		sockets <- socket
		fmt.Fprintln(c, ask(socket, from, to))
	})
	c := newCluster(t, upstream)
	c.Publish.Publish[0].User = "daemon"
	c.acceptUrsula(t)
	socket := whois.Beside(c.Ursula.Socket())
	sockets <- socket
	kit.OpenDirs(t, filepath.Dir(socket))
	c.start(t)
	return c
}

const daemonUID = 1

// askAs asks under an account.
func askAs(t *testing.T, uid uint32, socket string, q whois.Query) (a whois.Answer, err error) {
	t.Helper()
	var conn net.Conn
	// The peer of a Unix socket has the account that connects.
	agenttest.As(t, uid, func() { conn, err = net.Dial("unix", socket) })
	if err != nil {
		return a, err
	}
	defer conn.Close()
	query := url.Values{"from": {q.From.String()}, "protocol": {string(q.Protocol)}}
	if q.To.IsValid() {
		query.Set("to", q.To.String())
	}
	fmt.Fprintf(conn, "GET /whois?%s HTTP/1.1\r\nHost: agent\r\n\r\n", query.Encode())
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return a, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return a, fmt.Errorf("%s: %s, %w", res.Status, b, err)
	}
	err = json.Unmarshal(b, &a)
	return a, err
}

// read returns the service's answer on a connection of alice.
func read(t *testing.T, c *cluster) string {
	t.Helper()
	p := dial(t, c.Local)
	defer p.Close()
	b := make([]byte, 512)
	n, err := p.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b[:n]))
}

func TestWhois(t *testing.T) {
	questions := make(chan whois.Query, 1)
	c := asking(t, func(socket string, from, to netip.AddrPort) string {
		questions <- whois.Query{From: from}
		var all []string
		for _, q := range []whois.Query{{From: from}, {From: from, To: to}, {From: to}, {From: from, To: from}, {From: from, Protocol: document.UDP}} {
			for _, uid := range []uint32{0, daemonUID} {
				a, err := askAs(t, uid, socket, q)
				switch {
				case err == nil && a.From == from && a.To == to && a.Service == outline:
					all = append(all, a.Caller.Short())
				case err == nil:
					all = append(all, fmt.Sprint(a))
				case strings.Contains(err.Error(), "no connection of the forwarder"):
					all = append(all, "none")
				default:
					all = append(all, err.Error())
				}
			}
		}
		for _, uid := range []uint32{2, 4711, 65534} {
			_, err := askAs(t, uid, socket, whois.Query{From: from})
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("uid %d is no service's user", uid)) {
				all = append(all, fmt.Sprintf("uid %d is answered: %v", uid, err))
			}
		}
		return strings.Join(all, " ")
	})
	want := "user/alice user/alice user/alice user/alice none none none none none none"
	if got := read(t, c); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	socket, asked := whois.Beside(c.Ursula.Socket()), <-questions
	kit.Eventually(t, "the connection to be forgotten", func() bool {
		_, err := askAs(t, 0, socket, asked)
		return err != nil && strings.Contains(err.Error(), "no connection")
	})
	// Whose service it is the documents in force say.
	c.Publish.Publish[0].User = ""
	c.acceptUrsula(t)
	if _, err := askAs(t, daemonUID, socket, asked); err == nil || !strings.Contains(err.Error(), "is no service's user") {
		t.Errorf("got %v, want daemon to be refused", err)
	}
}

// TestWhoisAtOnce checks queries that come before the forwarder knows that its connection is
// established.
func TestWhoisAtOnce(t *testing.T) {
	c := asking(t, func(socket string, from, _ netip.AddrPort) string {
		a, err := whois.Fetch(context.Background(), socket, whois.Query{From: from})
		if err != nil {
			return err.Error()
		}
		return a.Caller.Short()
	})
	for range 50 {
		if got := read(t, c); got != alice.Short() {
			t.Fatalf("got %q", got)
		}
	}
}

// TestWhoisOfDatagrams checks that each session has an address of its own.
func TestWhoisOfDatagrams(t *testing.T) {
	agenttest.Root(t, "may ask of a service without an account")
	service, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { service.Close() })
	c := newCluster(t, service.LocalAddr().String())
	c.Publish.Publish[0].Protocol, c.Reach.Reach[0].Protocol = document.UDP, document.UDP
	c.Reach.Reach[0].Callers = []spiffe.ID{alice}
	c.Reach.Callers = c.Reach.Callers[:1]
	c.acceptUrsula(t)
	c.acceptLaptop(t)
	c.start(t)
	p, err := net.Dial("udp", c.Local)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	came := make(chan netip.AddrPort, 1)
	go func() {
		_, from, err := service.ReadFrom(make([]byte, 16))
		if err == nil {
			came <- from.(*net.UDPAddr).AddrPort()
		}
	}()
	if _, err := p.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	select {
	case from := <-came:
		a, err := whois.Fetch(t.Context(), whois.Beside(c.Ursula.Socket()), whois.Query{From: from, Protocol: document.UDP})
		if err != nil || a.Caller != alice || a.Service != outline {
			t.Errorf("got %+v, %v", a, err)
		}
	case <-time.After(kit.Patience):
		t.Fatal("no datagram came")
	}
}

// TestWhoisRefuses checks invalid queries.
func TestWhoisRefuses(t *testing.T) {
	agenttest.Root(t, "may ask of a service without an account")
	c := newCluster(t, agenttest.Echo(t))
	c.start(t)
	socket := whois.Beside(c.Ursula.Socket())
	_, err := whois.Fetch(t.Context(), socket, whois.Query{})
	if err == nil || !strings.Contains(err.Error(), `want the address that the connection comes from`) {
		t.Errorf("got %v", err)
	}
	_, err = whois.Fetch(t.Context(), socket, whois.Query{From: netip.MustParseAddrPort("127.0.0.1:1"), Protocol: "sctp"})
	if err == nil || !strings.Contains(err.Error(), `protocol "sctp", want "udp" or none`) {
		t.Errorf("got %v", err)
	}
}
