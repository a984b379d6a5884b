package forward_test

import (
	"context"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/florete/florete/agent/ping"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit/agenttest"
)

// pinged returns the result of flor ping on c's laptop, on which names of the cluster resolve to
// the given address.
func pinged(t *testing.T, c *cluster, service, resolved string) ping.Result {
	t.Helper()
	r, err := ping.Run(t.Context(), ping.Config{
		Socket: ping.Beside(c.Laptop.Socket()),
		Lookup: func(_ context.Context, name string) ([]string, error) {
			if name != "outline.demo.flor.rete" {
				t.Errorf("looked %s up", name)
			}
			return []string{resolved}, nil
		},
	}, service)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func steps(r ping.Result) (names []string) {
	for _, s := range r.Steps {
		names = append(names, s.Name)
	}
	return names
}

var allSteps = []string{ping.Name, ping.Listener, ping.Caller, ping.Dial, ping.Identity, ping.Upstream}

// TestPing checks that all steps succeed, and that the service got a connection that ended cleanly
// without a byte.
func TestPing(t *testing.T) {
	got := make(chan error, 1)
	c := newCluster(t, agenttest.Upstream(t, func(c *net.TCPConn) {
		b, err := io.ReadAll(c)
		if len(b) > 0 {
			t.Errorf("the service got %q", b)
		}
		got <- err
	}))
	c.Reach.Reach[0].Aliases = []string{"*.docs.demo.flor.rete", "notes.demo.flor.rete"}
	c.acceptLaptop(t)
	c.start(t)
	for _, service := range []string{"outline", "outline.demo.flor.rete", "notes", "any.docs", "notes.demo.flor.rete"} {
		r := pinged(t, c, service, agenttest.LoopbackIP.String())
		if broken, is := r.Broken(); is || !slices.Equal(steps(r), allSteps) {
			t.Fatalf("%s: %+v, broken: %+v", service, r, broken)
		}
		if dial := r.Steps[3]; !strings.Contains(dial.Detail, " over quic, ") || dial.Nanoseconds <= 0 || r.Steps[5].Nanoseconds <= 0 {
			t.Errorf("%s: %+v", service, r.Steps)
		}
		if err := <-got; err != nil {
			t.Errorf("%s: the service's connection ended with %v", service, err)
		}
	}
}

// TestPingSeveral checks that independent faults are all found at once, each with a remedy.
func TestPingSeveral(t *testing.T) {
	c := newCluster(t, agenttest.RefusingTCP(t))
	taken(t, c.Local)
	c.start(t)
	r := pinged(t, c, "outline", "192.0.2.1")
	var broken []string
	for _, s := range r.Steps {
		if s.Error != "" && s.Remedy != "" {
			broken = append(broken, s.Name)
		}
	}
	if !slices.Equal(broken, []string{ping.Name, ping.Listener, ping.Upstream}) || !slices.Equal(steps(r), allSteps) {
		t.Errorf("broken: %q of %+v", broken, r.Steps)
	}
	var out strings.Builder
	if err := ping.Print(&out, r); err != nil || strings.Count(out.String(), "\nbroken: ") != 3 {
		t.Errorf("%v, printed:\n%s", err, &out)
	}
}

// TestPingBroken checks that the broken step is named, with a remedy, and that steps that depend on
// it are not tried.
func TestPingBroken(t *testing.T) {
	for want, c := range map[string]struct {
		change   func(*testing.T, *cluster)
		resolved string
		service  string
		problem  string
	}{
		"name: is not reachable":      {service: "nosuch", problem: "service/nosuch is not reachable from this host: none has that name, or no role here reaches it"},
		"name: leads elsewhere":       {resolved: "192.0.2.1", problem: "leads to [192.0.2.1]"},
		"listener: another's address": {change: func(t *testing.T, c *cluster) { taken(t, c.Local) }, problem: "does not listen at"},
		"caller: an unknown account":  {change: func(_ *testing.T, c *cluster) { c.Reach.Callers = nil }, problem: "unknown-caller"},
		"caller: without a role":      {change: func(_ *testing.T, c *cluster) { c.Reach.Reach[0].Callers = []spiffe.ID{bob} }, problem: "not-reachable"},
		"dial: no forwarder": {change: func(_ *testing.T, c *cluster) {
			c.Reach.Reach[0].Endpoints = []document.Addresses{{"forwarder.invalid:4610"}}
		}, problem: "no-connection"},
		"identity: not allowed": {change: func(_ *testing.T, c *cluster) { c.Publish.Publish[0].Allow = nil }, problem: "denied"},
		"identity: another's":   {change: func(_ *testing.T, c *cluster) { c.Publish.Publish = nil }, problem: "not-published"},
		"upstream: nobody listens": {change: func(t *testing.T, c *cluster) {
			c.Publish.Publish[0].Upstream = agenttest.RefusingTCP(t)
		}, problem: "upstream-refused"},
	} {
		t.Run(want, func(t *testing.T) {
			cluster := newCluster(t, agenttest.Echo(t))
			if c.change != nil {
				c.change(t, cluster)
				cluster.AcceptUrsula()
				cluster.AcceptLaptop()
			}
			cluster.start(t)
			if c.service == "" {
				c.service = "outline"
			}
			if c.resolved == "" {
				c.resolved = agenttest.LoopbackIP.String()
			}
			r := pinged(t, cluster, c.service, c.resolved)
			broken, is := r.Broken()
			step, _, _ := strings.Cut(want, ":")
			if !is || broken.Name != step || !strings.Contains(broken.Error, c.problem) || broken.Remedy == "" {
				t.Errorf("broken: %+v of %+v", broken, r)
			}
			if names := steps(r); r.ID != "" && !slices.Equal(names, allSteps) {
				t.Errorf("steps %q", names)
			}
			for _, s := range r.Steps[slices.Index(allSteps, step)+1:] {
				if s.Error != "" || s.Needs != "" && s.Needs != step {
					t.Errorf("step %+v after %s is broken", s, step)
				}
			}
		})
	}
}

// taken occupies an address so that the agent cannot listen on it.
func taken(t *testing.T, addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
}

// TestPingUDP checks that ping over UDP reports what it could not prove, and sends nothing.
func TestPingUDP(t *testing.T) {
	service, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	c := newCluster(t, service.LocalAddr().String())
	c.Publish.Publish[0].Protocol, c.Reach.Reach[0].Protocol = document.UDP, document.UDP
	c.AcceptUrsula()
	c.AcceptLaptop()
	c.start(t)
	r := pinged(t, c, "outline", agenttest.LoopbackIP.String())
	if broken, is := r.Broken(); is || !slices.Equal(steps(r), allSteps) || !strings.Contains(r.Steps[5].Detail, "a datagram alone would show") {
		t.Errorf("%+v, broken: %+v", r, broken)
	}
}
