package inbound_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"florete"
	"florete/agent/agenttest"
	"florete/agent/identity"
	"florete/agent/inbound"
	"florete/agent/tally"
	"florete/agent/transport"
	"florete/agent/wire"
)

func TestMain(m *testing.M) { agenttest.Main(m) }

// TestPeerTakesNoMore: a peer has as many connections as it may, and others have theirs.
func TestPeerTakesNoMore(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { io.Copy(c, c); c.Close() }()
		}
	}()
	c := agenttest.NewCluster(t, ln.Addr().String())
	c.Publish.Publish[0].Allow = []florete.Allow{{ID: agenttest.Alice}, {ID: agenttest.Bob}}
	ursula, laptop := c.Ursula.Identities(t), c.Laptop.Identities(t)
	counted := &tally.Tally{}
	s := inbound.New(inbound.Config{
		Identities: func() *identity.Set { return ursula }, Tally: counted, Log: slog.New(slog.DiscardHandler), PerPeer: 2,
	})
	defer s.Close()
	if err := s.Apply(c.Publish); err != nil {
		t.Fatal(err)
	}
	pool, err := transport.NewPool(func() *identity.Set { return laptop })
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	outline, err := florete.Dial(agenttest.Outline)
	if err != nil {
		t.Fatal(err)
	}
	open := func(as florete.ID) (*transport.Stream, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		st, err := pool.Open(ctx, transport.Route{Caller: as, Target: outline, Endpoints: []string{c.Publish.Listen}}, wire.TCP)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(st.Release)
		return st, st.Answer(ctx)
	}
	first, err := open(agenttest.Alice)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(agenttest.Alice); err != nil {
		t.Fatal(err)
	}
	_, err = open(agenttest.Alice)
	var refused *transport.RefusedError
	if !errors.As(err, &refused) || refused.Code != wire.Unreachable {
		t.Errorf("a third: %v, want upstream-unreachable", err)
	}
	if last := counted.Summary().Last; len(last) != 1 || last[0].Peer != agenttest.Alice.String() {
		t.Errorf("refusals: %+v", last)
	}
	if _, err := open(agenttest.Bob); err != nil {
		t.Errorf("another peer: %v", err)
	}
	first.Close()
	for until := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := open(agenttest.Alice); err == nil {
			break
		}
		if time.Now().After(until) {
			t.Fatal("refused after one has ended")
		}
	}
}
