package forward_test

import (
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// sending starts an upstream that sends a word, and then echoes.
func sending(t *testing.T, word string) string {
	t.Helper()
	return agenttest.Upstream(t, func(c *net.TCPConn) {
		io.WriteString(c, word)
		io.Copy(c, c)
		c.CloseWrite()
	})
}

// firstWord returns the first word that an upstream of sending sends.
func firstWord(t *testing.T, c net.Conn) string {
	t.Helper()
	b := make([]byte, 4)
	if _, err := io.ReadFull(c, b); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// newPortsCluster returns a Cluster whose outline has the ports http, metrics, and dns over both
// protocols, and the addresses of their listeners. Alice may reach all ports, bob only metrics.
func newPortsCluster(t *testing.T) (c *cluster, at map[string]string) {
	t.Helper()
	c = newCluster(t, agenttest.Echo(t))
	datagrams, _ := echoUDP(t)
	first := netip.MustParseAddrPort(c.Local)
	published, reachable := c.Publish.Publish[0], c.Reach.Reach[0]
	c.Publish.Publish, c.Reach.Reach, at = nil, nil, map[string]string{}
	for i, x := range []struct {
		name     string
		protocol document.Protocol
		upstream string
		allow    []document.Allow
	}{
		{"dns", document.TCP, sending(t, "name"), []document.Allow{{ID: alice}}},
		{"dns", document.UDP, datagrams, []document.Allow{{ID: alice}}},
		{"http", document.TCP, sending(t, "page"), []document.Allow{{ID: alice}}},
		{"metrics", document.TCP, sending(t, "sums"), []document.Allow{{ID: alice}, {ID: bob}}},
	} {
		p, r := published, reachable
		p.Port, p.Protocol, p.Upstream, p.Allow = x.name, x.protocol, x.upstream, x.allow
		r.Port, r.Protocol = x.name, x.protocol
		r.Listen = netip.AddrPortFrom(first.Addr(), first.Port()+uint16(i)*1000)
		if x.protocol == document.UDP {
			r.Listen = c.Reach.Reach[i-1].Listen // one port, over both
		}
		c.Publish.Publish, c.Reach.Reach = append(c.Publish.Publish, p), append(c.Reach.Reach, r)
		at[strings.TrimSuffix(x.name+"/"+string(x.protocol), "/")] = r.Listen.String()
	}
	c.acceptUrsula(t)
	c.acceptLaptop(t)
	c.start(t)
	return c, at
}

func portOf(t *testing.T, addr string) uint16 {
	t.Helper()
	return netip.MustParseAddrPort(addr).Port()
}

// TestPorts checks that each port of a service leads to its own upstream, at a listener and over
// SOCKS5.
func TestPorts(t *testing.T) {
	t.Parallel()
	c, at := newPortsCluster(t)
	for name, word := range map[string]string{"dns": "name", "http": "page", "metrics": "sums"} {
		if got := firstWord(t, dial(t, at[name])); got != word {
			t.Errorf("%s at its listener: %q, want %q", name, got, word)
		}
		conn, code := socksDial(t, c.SOCKS[alice], "outline.demo.flor.rete", portOf(t, at[name]))
		if code != 0 {
			t.Errorf("%s over SOCKS5: reply %d", name, code)
		} else if got := firstWord(t, conn); got != word {
			t.Errorf("%s over SOCKS5: %q, want %q", name, got, word)
		}
		if broken, is := pinged(t, c, "outline:"+name, agenttest.LoopbackIP.String()).Broken(); is {
			t.Errorf("ping of %s: %+v", name, broken)
		}
	}
	conn := dialUDP(t, at["dns/udp"])
	kit.Eventually(t, "dns over UDP", func() bool { return reachesUDP(conn) })
	if _, code := socksDial(t, c.SOCKS[alice], "outline.demo.flor.rete", 1); code != 4 {
		t.Errorf("a port that is not there: reply %d, want 4", code)
	}
	if broken, _ := pinged(t, c, "outline", agenttest.LoopbackIP.String()).Broken(); !strings.Contains(broken.Remedy, "outline:dns, outline:http, outline:metrics") {
		t.Errorf("ping of no port: %+v", broken)
	}
	for _, h := range []*agenttest.Host{c.Ursula, c.Laptop} {
		begun := map[string]int64{}
		for _, p := range report(t, h).Paths {
			begun[p.Port] += p.Total
		}
		if begun[""] != 0 || begun["http"] < 2 || begun["metrics"] < 2 || begun["dns"] < 3 {
			t.Errorf("%s counts %v by port", h.Name, begun)
		}
	}
	if r := report(t, c.Ursula); len(r.Published) != 4 || r.Published[3].Port != "metrics" {
		t.Errorf("published: %+v", r.Published)
	}
}

// TestPortAllow checks that a caller of one port of a service is refused at the others by the
// publishing host, whatever its own manifest contains, and that connections to a port end when it
// is denied while those to others continue.
func TestPortAllow(t *testing.T) {
	t.Parallel()
	c, at := newPortsCluster(t)
	as := func(name string) (net.Conn, byte) {
		return socksDial(t, c.SOCKS[bob], "outline.demo.flor.rete", portOf(t, at[name]))
	}
	metrics, code := as("metrics")
	if code != 0 || firstWord(t, metrics) != "sums" {
		t.Fatalf("metrics: reply %d", code)
	}
	if _, code := as("http"); code != 2 {
		t.Errorf("http: reply %d, want 2", code)
	}
	refusals(t, c.Ursula, "denied", 1)

	page := dial(t, at["http"])
	firstWord(t, page)
	for i := range c.Publish.Publish {
		if p := &c.Publish.Publish[i]; p.Port == "metrics" {
			p.Allow = []document.Allow{{ID: alice}}
		} else if p.Port == "http" {
			p.Allow = []document.Allow{{ID: bob}}
		}
	}
	c.acceptUrsula(t)
	wantReset(t, metrics)
	wantReset(t, page)
	if got := firstWord(t, dial(t, at["metrics"])); got != "sums" {
		t.Errorf("alice at metrics: %q", got)
	}
}
