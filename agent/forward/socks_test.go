package forward_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

func (c *cluster) port(t *testing.T) uint16 {
	t.Helper()
	return netip.MustParseAddrPort(c.Local).Port()
}

// socksRequest speaks SOCKS5 up to the reply, which it returns.
func socksRequest(t *testing.T, proxy string, request []byte) (net.Conn, byte) {
	t.Helper()
	c := dial(t, proxy)
	c.Write([]byte{5, 1, 0})
	var method [2]byte
	if _, err := io.ReadFull(c, method[:]); err != nil || method != [2]byte{5, 0} {
		t.Fatalf("method reply %v, %v", method, err)
	}
	c.Write(request)
	var reply [10]byte
	if _, err := io.ReadFull(c, reply[:]); err != nil {
		t.Fatalf("reply: %v", err)
	}
	return c, reply[1]
}

func connectTo(host string, port uint16) []byte {
	b := append([]byte{5, 1, 0, 3, byte(len(host))}, host...)
	return binary.BigEndian.AppendUint16(b, port)
}

func socksDial(t *testing.T, proxy, host string, port uint16) (net.Conn, byte) {
	t.Helper()
	return socksRequest(t, proxy, connectTo(host, port))
}

func TestHTTPThroughSOCKS(t *testing.T) {
	c := newCluster(t, hello(t))
	c.start(t)
	proxy := &url.URL{Scheme: "socks5h", Host: c.SOCKS[alice]}
	client := http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy), DisableKeepAlives: true}, Timeout: kit.Patience}
	res, err := client.Get("http://outline.demo.flor.rete:" + netipPort(c.Local) + "/docs")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, _ := io.ReadAll(res.Body); string(b) != "hello /docs" {
		t.Fatalf("got %q", b)
	}
}

func netipPort(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}

func TestSOCKSReplies(t *testing.T) {
	denied := newCluster(t, agenttest.Echo(t))
	denied.Reach.Reach[0].Aliases = []string{"*.docs.demo.flor.rete", "notes.demo.flor.rete"}
	denied.acceptLaptop(t)
	denied.start(t)
	refusing := newCluster(t, agenttest.RefusingTCP(t))
	refusing.start(t)
	unpublished := newCluster(t, agenttest.Echo(t))
	unpublished.Publish.Publish = nil
	unpublished.acceptUrsula(t)
	unpublished.start(t)
	expired := newCluster(t, agenttest.Echo(t))
	expired.Laptop.Deliver(expired.CA, alice, -time.Minute)
	expired.start(t)
	const name = "outline.demo.flor.rete"
	for _, x := range []struct {
		what    string
		cluster *cluster
		as      spiffe.ID
		request func(port uint16) []byte
		want    byte
	}{
		{"allowed", denied, alice, func(p uint16) []byte { return connectTo(name, p) }, 0},
		{"the far side's list denies", denied, bob, func(p uint16) []byte { return connectTo(name, p) }, 2},
		{"upper case and final dot", denied, alice, func(p uint16) []byte { return connectTo("OUTLINE.demo.flor.rete.", p) }, 0},
		{"an alias", denied, alice, func(p uint16) []byte { return connectTo("Notes.demo.flor.rete", p) }, 0},
		{"an alias by a wildcard", denied, alice, func(p uint16) []byte { return connectTo("any.docs.demo.flor.rete", p) }, 0},
		{"two labels before a wildcard's", denied, alice, func(p uint16) []byte { return connectTo("a.b.docs.demo.flor.rete", p) }, 4},
		{"an alias, of whom the far side's list denies", denied, bob, func(p uint16) []byte { return connectTo("any.docs.demo.flor.rete", p) }, 2},
		{"another port: a name is one service", denied, alice, func(p uint16) []byte { return connectTo(name, 80) }, 0},
		{"a service that is not in the manifest", denied, alice, func(p uint16) []byte { return connectTo("wiki.demo.flor.rete", p) }, 2},
		{"another trust domain", denied, alice, func(p uint16) []byte { return connectTo("outline.other.flor.rete", p) }, 4},
		{"a DNS name", denied, alice, func(p uint16) []byte { return connectTo("localhost", p) }, 4},
		{"an IP address", denied, alice, func(p uint16) []byte { return []byte{5, 1, 0, 1, 127, 0, 0, 1, byte(p >> 8), byte(p)} }, 8},
		{"BIND", denied, alice, func(p uint16) []byte { b := connectTo(name, p); b[1] = 2; return b }, 7},
		{"the upstream refuses", refusing, alice, func(p uint16) []byte { return connectTo(name, p) }, 5},
		{"not published", unpublished, alice, func(p uint16) []byte { return connectTo(name, p) }, 4},
		{"the identity has expired", expired, alice, func(p uint16) []byte { return connectTo(name, p) }, 1},
	} {
		t.Run(x.what, func(t *testing.T) {
			conn, got := socksRequest(t, x.cluster.SOCKS[x.as], x.request(x.cluster.port(t)))
			if got != x.want {
				t.Fatalf("reply %d, want %d", got, x.want)
			}
			if got == 0 {
				if err := agenttest.Ping(conn); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestSOCKSNeverAsksDNS makes every DNS look-up of the process fail.
func TestSOCKSNeverAsksDNS(t *testing.T) {
	old := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = old })
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		t.Error("DNS was asked")
		return nil, io.EOF
	}}
	c := newCluster(t, agenttest.Echo(t))
	c.start(t)
	for host, want := range map[string]byte{"outline.demo.flor.rete": 0, "no-such-host.example": 4, "x.y.z.demo.flor.rete": 4} {
		if _, got := socksDial(t, c.SOCKS[alice], host, c.port(t)); got != want {
			t.Errorf("%s: reply %d, want %d", host, got, want)
		}
	}
}

// TestSOCKSEarlyData sends data in one go with the request.
func TestSOCKSEarlyData(t *testing.T) {
	c := newCluster(t, agenttest.Echo(t))
	c.start(t)
	conn, code := socksRequest(t, c.SOCKS[alice], append(connectTo("outline.demo.flor.rete", c.port(t)), "early"...))
	if code != 0 {
		t.Fatalf("reply %d", code)
	}
	conn.Write([]byte(" bird"))
	var b [10]byte
	if _, err := io.ReadFull(conn, b[:]); err != nil || string(b[:]) != "early bird" {
		t.Fatalf("got %q, %v", b, err)
	}
}

// TestNotSOCKS5 checks that a client that speaks another protocol to the SOCKS5 port gets an error
// at once, in its own protocol.
func TestNotSOCKS5(t *testing.T) {
	c := newCluster(t, agenttest.Echo(t))
	c.start(t)
	for name, x := range map[string]struct{ sent, answer string }{
		"an HTTP proxy":    {"GET http://outline.demo.flor.rete/ HTTP/1.1\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n"},
		"HTTP's CONNECT":   {"CONNECT outline.demo.flor.rete:80 HTTP/1.1\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n"},
		"SOCKS4":           {"\x04\x01\x00\x50\x7f\x00\x00\x01\x00", "\x00\x5b"},
		"another protocol": {"\x16\x03\x01", ""},
	} {
		t.Run(name, func(t *testing.T) {
			local := dial(t, c.SOCKS[alice])
			io.WriteString(local, x.sent)
			local.CloseWrite()
			got, err := io.ReadAll(local)
			if err != nil || !strings.HasPrefix(string(got), x.answer) || (x.answer == "") != (len(got) == 0) {
				t.Errorf("got %q, %v, want %q", got, err, x.answer)
			}
		})
	}
	kit.Eventually(t, "refusals", func() bool { return report(t, c.Laptop).Refusals["not-socks5"] == 4 })
}
