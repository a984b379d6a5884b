package inbound_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/agent/forward/inbound"
	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/agent/whois"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

func TestMain(m *testing.M) { agenttest.Main(m) }

// cluster has a server of outline that allows alice and bob two connections and two streams each.
type cluster struct {
	t *testing.T
	*agenttest.Cluster
	counted *telemetry.Counters
}

func start(t *testing.T, upstream string) *cluster {
	t.Helper()
	c := &cluster{t, agenttest.NewCluster(t, upstream), &telemetry.Counters{}}
	c.Publish.Publish[0].Allow = []document.Allow{{ID: agenttest.Alice}, {ID: agenttest.Bob}}
	ursula := c.Ursula.Identities(t)
	s := inbound.New(inbound.Config{
		Identities: func() *hostdir.SVIDSet { return ursula }, Metrics: c.counted, Log: slog.New(slog.DiscardHandler), Limits: inbound.Limits{Connections: 2, Streams: 2}, Usage: &usage.Table{}, Whois: &whois.Table{},
	})
	t.Cleanup(s.Close)
	if errs := s.Apply(c.Publish); len(errs) > 0 {
		t.Fatal(errs)
	}
	return c
}

// pool returns a new pool of QUIC connections.
func (c *cluster) pool() *transport.Pool {
	c.t.Helper()
	laptop := c.Laptop.Identities(c.t)
	p, err := transport.NewPool(func() *hostdir.SVIDSet { return laptop }, &usage.Table{})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(p.Close)
	return p
}

// open opens a stream and returns the answer.
func (c *cluster) open(p *transport.Pool, as spiffe.ID) (*transport.Stream, error) {
	c.t.Helper()
	outline, err := spiffe.Dial(agenttest.Outline)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), kit.Patience)
	defer cancel()
	st, err := p.Open(ctx, transport.Route{Caller: as, Target: outline, Endpoints: []document.Addresses{c.Publish.Listen}}, wire.TCP)
	if err != nil {
		return nil, err
	}
	c.t.Cleanup(st.Release)
	return st, st.Answer(ctx)
}

// wantBusy checks that alice is refused as busy at both sides.
func (c *cluster) wantBusy(err error) {
	c.t.Helper()
	var refused *transport.RefusedError
	if !errors.As(err, &refused) || refused.Code != wire.Busy {
		c.t.Errorf("one too many: %v, want busy", err)
	}
	if recent := c.counted.Summary().RecentRefusals; len(recent) != 1 || recent[0].Reason != "busy" || recent[0].Peer != agenttest.Alice.String() {
		c.t.Errorf("refusals: %+v", recent)
	}
}

// wantRoom waits until alice is admitted again.
func (c *cluster) wantRoom(p *transport.Pool) {
	c.t.Helper()
	kit.Eventually(c.t, "room after one has ended", func() bool { _, err := c.open(p, agenttest.Alice); return err == nil })
}

// TestStreams checks the limit of a peer's connections to services, and that other peers have
// limits of their own.
func TestStreams(t *testing.T) {
	c := start(t, agenttest.Echo(t))
	p := c.pool()
	first, err := c.open(p, agenttest.Alice)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.open(p, agenttest.Alice); err != nil {
		t.Fatal(err)
	}
	_, err = c.open(p, agenttest.Alice)
	c.wantBusy(err)
	if _, err := c.open(p, agenttest.Bob); err != nil {
		t.Errorf("another peer: %v", err)
	}
	first.Close()
	c.wantRoom(p)
}

// TestConnections checks the limit of a peer's QUIC connections, without any streams.
func TestConnections(t *testing.T) {
	c := start(t, agenttest.Echo(t))
	var pools []*transport.Pool
	for range 2 {
		p := c.pool()
		st, err := c.open(p, agenttest.Alice)
		if err != nil {
			t.Fatal(err)
		}
		st.Close()
		pools = append(pools, p)
	}
	third := c.pool()
	_, err := c.open(third, agenttest.Alice)
	c.wantBusy(err)
	if _, err := c.open(third, agenttest.Bob); err != nil {
		t.Errorf("another peer: %v", err)
	}
	pools[0].Close()
	c.wantRoom(third)
}

// TestBusyUpstream checks that an upstream with a full queue is reported as busy and not as
// unreachable.
func TestBusyUpstream(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outline.sock")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	waiting, err := net.Dial("unix", path) // the one that the queue holds
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	c := start(t, "unix:"+path)
	_, err = c.open(c.pool(), agenttest.Alice)
	c.wantBusy(err)
}
