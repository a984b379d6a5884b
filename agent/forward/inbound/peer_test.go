package inbound_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/agent/agenttest"
	"github.com/florete/florete/agent/forward/identity"
	"github.com/florete/florete/agent/forward/inbound"
	"github.com/florete/florete/agent/forward/metrics"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/forward/wire"
)

func TestMain(m *testing.M) { agenttest.Main(m) }

// cluster has a server of outline, an echo, that lets alice and bob have two of
// everything.
type cluster struct {
	t *testing.T
	*agenttest.Cluster
	counted *metrics.Counters
}

func start(t *testing.T) *cluster {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { io.Copy(c, c); c.Close() }()
		}
	}()
	c := &cluster{t, agenttest.NewCluster(t, ln.Addr().String()), &metrics.Counters{}}
	c.Publish.Publish[0].Allow = []florete.Allow{{ID: agenttest.Alice}, {ID: agenttest.Bob}}
	ursula := c.Ursula.Identities(t)
	s := inbound.New(inbound.Config{
		Identities: func() *identity.Set { return ursula }, Metrics: c.counted, Log: slog.New(slog.DiscardHandler), Limits: inbound.Limits{Connections: 2, Streams: 2}, Usage: &usage.Table{},
	})
	t.Cleanup(s.Close)
	if errs := s.Apply(c.Publish); len(errs) > 0 {
		t.Fatal(errs)
	}
	return c
}

// pool makes connections of QUIC, one for each caller.
func (c *cluster) pool() *transport.Pool {
	c.t.Helper()
	laptop := c.Laptop.Identities(c.t)
	p, err := transport.NewPool(func() *identity.Set { return laptop }, &usage.Table{})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(p.Close)
	return p
}

// open opens a stream, and returns what is answered.
func (c *cluster) open(p *transport.Pool, as florete.ID) (*transport.Stream, error) {
	c.t.Helper()
	outline, err := florete.Dial(agenttest.Outline)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Second)
	defer cancel()
	st, err := p.Open(ctx, transport.Route{Caller: as, Target: outline, Endpoints: []florete.Addresses{c.Publish.Listen}}, wire.TCP)
	if err != nil {
		return nil, err
	}
	c.t.Cleanup(st.Release)
	return st, st.Answer(ctx)
}

func (c *cluster) wantRefused(err error) {
	c.t.Helper()
	var refused *transport.RefusedError
	if !errors.As(err, &refused) || refused.Code != wire.Busy {
		c.t.Errorf("a third: %v, want busy", err)
	}
	if last := c.counted.Summary().RecentRefusals; len(last) != 1 || last[0].Peer != agenttest.Alice.String() {
		c.t.Errorf("refusals: %+v", last)
	}
}

// wantRoom waits until alice is let in again.
func (c *cluster) wantRoom(p *transport.Pool) {
	c.t.Helper()
	for until := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		_, err := c.open(p, agenttest.Alice)
		if err == nil {
			return
		}
		if time.Now().After(until) {
			c.t.Fatalf("after one has ended: %v", err)
		}
	}
}

// TestStreams: a peer has as many connections to services as it may, and others have
// theirs.
func TestStreams(t *testing.T) {
	c := start(t)
	p := c.pool()
	first, err := c.open(p, agenttest.Alice)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.open(p, agenttest.Alice); err != nil {
		t.Fatal(err)
	}
	_, err = c.open(p, agenttest.Alice)
	c.wantRefused(err)
	if _, err := c.open(p, agenttest.Bob); err != nil {
		t.Errorf("another peer: %v", err)
	}
	first.Close()
	c.wantRoom(p)
}

// TestConnections: the same of connections of QUIC, without anything in them.
func TestConnections(t *testing.T) {
	c := start(t)
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
	c.wantRefused(err)
	if _, err := c.open(third, agenttest.Bob); err != nil {
		t.Errorf("another peer: %v", err)
	}
	pools[0].Close()
	c.wantRoom(third)
}
