package forward_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/florete/florete/agent/forward"
	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

type refusal = telemetry.Refusal

var (
	outline, alice, bob = agenttest.Outline, agenttest.Alice, agenttest.Bob
	laptop, ursula      = agenttest.Laptop, agenttest.Ursula
)

// cluster is a Cluster whose agents may be running. Those of its relays always are.
type cluster struct {
	*agenttest.Cluster
	running bool
}

func newCluster(t *testing.T, upstream string) *cluster {
	t.Helper()
	c := &cluster{Cluster: agenttest.NewCluster(t, upstream)}
	for _, h := range c.Relays {
		run(t, h)
		kit.Eventually(t, h.Name+" to run", func() bool { return report(t, h).State == "running" })
	}
	return c
}

// acceptUrsula and acceptLaptop write the host's manifest as c describes it, and wait until a
// running agent has it in force.
func (c *cluster) acceptUrsula(t *testing.T) {
	t.Helper()
	c.AcceptUrsula()
	c.inForce(t, c.Ursula)
}

func (c *cluster) acceptLaptop(t *testing.T) {
	t.Helper()
	c.AcceptLaptop()
	c.inForce(t, c.Laptop)
}

func (c *cluster) inForce(t *testing.T, h *agenttest.Host) {
	t.Helper()
	if c.running {
		kit.Eventually(t, h.Name+" to have its manifest in force", func() bool {
			m := report(t, h).Manifest
			return m != nil && m.Serial == h.Serial
		})
	}
}

// start runs the agents of both hosts until the test ends.
func (c *cluster) start(t *testing.T) {
	t.Helper()
	for _, h := range []*agenttest.Host{c.Ursula, c.Laptop} {
		run(t, h)
		kit.Eventually(t, h.Name+" to run", func() bool { return report(t, h).State == "running" })
	}
	c.running = true
}

// run starts the agent of one host. stop ends it and waits. The agent learns of changes by watching
// alone.
func run(t *testing.T, h *agenttest.Host) (stop func()) {
	t.Helper()
	return runWith(t, forward.Config{Layout: h.Layout, Socket: h.Socket(), Poll: time.Hour})
}

func runWith(t *testing.T, config forward.Config) (stop func()) {
	t.Helper()
	config.Grace = cmp.Or(config.Grace, 200*time.Millisecond)
	config.Log = slog.New(slog.NewTextHandler(t.Output(), nil)).With("socket", config.Socket)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- forward.Run(ctx, config) }()
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

func hello(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello %s", r.URL.Path)
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// get reads an answer over a new connection.
func get(addr string) (string, error) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: kit.Patience}
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
	got, err := get(c.Local)
	if err != nil || got != "hello /docs" {
		t.Fatalf("got %q, %v", got, err)
	}
}
