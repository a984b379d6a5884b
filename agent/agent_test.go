package agent_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"florete"
	"florete/agent"
	"florete/agent/agenttest"
	"florete/agent/status"
	"florete/agent/tally"
)

type refusal = tally.Refusal

// The cluster of these tests: ursula publishes service/outline; alice and bob are
// users on laptop, whose node identity may not reach it.
var (
	outline = agenttest.ID("service/outline")
	alice   = agenttest.ID("user/alice")
	bob     = agenttest.ID("user/bob")
	laptop  = agenttest.ID("node/laptop")
	ursula  = agenttest.ID("node/ursula")
)

type cluster struct {
	ca             *agenttest.CA
	ursula, laptop *agenttest.Host
	publish, reach florete.Forwarder
	local          string // listener for outline on laptop
	socks          map[florete.ID]string
	running        bool
}

// newCluster writes both hosts' state: outline is served by upstream, and alice is
// the identity of this process.
func newCluster(t *testing.T, upstream string) *cluster {
	t.Helper()
	ca := agenttest.NewCA(t)
	c := &cluster{ca: ca, ursula: agenttest.NewHost(t, "ursula", ca), laptop: agenttest.NewHost(t, "laptop", ca)}
	endpoint := freeUDP(t)
	me := uint32(os.Getuid())
	c.publish = florete.Forwarder{
		Listen:  endpoint,
		Publish: []florete.Published{{ID: outline, Upstream: upstream, Allow: []florete.Allow{{ID: alice}}}},
	}
	local, a, b := freeTCP(t), freeTCP(t), freeTCP(t)
	c.local, c.socks = local.String(), map[florete.ID]string{alice: a.String(), bob: b.String()}
	c.reach = florete.Forwarder{
		Reach:   []florete.Reachable{{ID: outline, As: []florete.ID{alice, bob}, Listen: local, Endpoints: []string{endpoint}}},
		Callers: []florete.Caller{{ID: alice, UIDs: []uint32{me}}, {ID: bob, UIDs: []uint32{me}}},
		SOCKS:   []florete.SOCKS{{ID: alice, Listen: a}, {ID: bob, Listen: b}},
	}
	c.acceptUrsula(t)
	c.acceptLaptop(t)
	c.ursula.Deliver(t, ca, ursula, time.Hour)
	c.ursula.Deliver(t, ca, outline, time.Hour)
	c.laptop.Deliver(t, ca, laptop, time.Hour)
	c.laptop.Deliver(t, ca, alice, time.Hour)
	c.laptop.Deliver(t, ca, bob, time.Hour)
	return c
}

// acceptUrsula and acceptLaptop write the host's manifest as c says and wait until
// a running agent has it in force.
func (c *cluster) acceptUrsula(t *testing.T) {
	t.Helper()
	c.ursula.Accept(t, c.publish, outline)
	c.inForce(t, c.ursula)
}

func (c *cluster) acceptLaptop(t *testing.T) {
	t.Helper()
	c.laptop.Accept(t, c.reach, alice, bob)
	c.inForce(t, c.laptop)
}

func (c *cluster) inForce(t *testing.T, h *agenttest.Host) {
	t.Helper()
	if c.running {
		waitFor(t, h.Name+" to have its manifest in force", func() bool {
			m := report(t, h).Manifest
			return m != nil && m.Serial == h.Serial
		})
	}
}

// start runs the agents of both hosts until the test ends.
func (c *cluster) start(t *testing.T) {
	t.Helper()
	for _, h := range []*agenttest.Host{c.ursula, c.laptop} {
		run(t, h)
		waitFor(t, h.Name+" to run", func() bool { return report(t, h).State == "running" })
	}
	c.running = true
}

// run starts the agent of one host; stop ends it and waits. Only watching tells
// it of changes.
func run(t *testing.T, h *agenttest.Host) (stop func()) {
	t.Helper()
	return runWith(t, agent.Config{Layout: h.Layout, Socket: h.Socket(), Poll: time.Hour})
}

func runWith(t *testing.T, config agent.Config) (stop func()) {
	t.Helper()
	config.Grace = 200 * time.Millisecond
	config.Log = slog.New(slog.NewTextHandler(t.Output(), nil)).With("socket", config.Socket)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- agent.Run(ctx, config) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("agent: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func report(t *testing.T, h *agenttest.Host) status.Report {
	t.Helper()
	r, _, err := status.Fetch(context.Background(), h.Socket())
	if err != nil {
		return status.Report{}
	}
	return r
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func freeUDP(t *testing.T) string {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.LocalAddr().String()
}

func freeTCP(t *testing.T) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return netip.MustParseAddrPort(l.Addr().String())
}

func hello(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello %s", r.URL.Path)
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// get asks over one connection of its own.
func get(addr string) (string, error) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	res, err := client.Get("http://" + addr + "/docs")
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return string(b), err
}

func TestHTTPThroughLocalListener(t *testing.T) {
	c := newCluster(t, hello(t))
	c.start(t)
	got, err := get(c.local)
	if err != nil || got != "hello /docs" {
		t.Fatalf("got %q, %v", got, err)
	}
}
