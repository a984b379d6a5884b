package outbound_test

import (
	"io"
	"log/slog"
	"net"
	"os"
	"testing"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/agent/agenttest"
	"github.com/florete/florete/agent/forward/fdstore"
	"github.com/florete/florete/agent/forward/identity"
	"github.com/florete/florete/agent/forward/inbound"
	"github.com/florete/florete/agent/forward/metrics"
	"github.com/florete/florete/agent/forward/outbound"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/usage"
)

func TestMain(m *testing.M) { agenttest.Main(m) }

// TestUserTakesNoMore: a user has as many connections as it may, and others have theirs.
func TestUserTakesNoMore(t *testing.T) {
	agenttest.Root(t, "can start a process of another user")
	const other = 64998
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
	ursula, laptop := c.Ursula.Identities(t), c.Laptop.Identities(t)
	log := slog.New(slog.DiscardHandler)
	in := inbound.New(inbound.Config{Usage: &usage.Table{}, Identities: func() *identity.Set { return ursula }, Metrics: &metrics.Counters{}, Log: log})
	defer in.Close()
	if errs := in.Apply(c.Publish); len(errs) > 0 {
		t.Fatal(errs)
	}
	pool, err := transport.NewPool(func() *identity.Set { return laptop }, &usage.Table{})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	counted := &metrics.Counters{}
	out := outbound.New(outbound.Config{Pool: pool, Sockets: &fdstore.Store{}, Metrics: counted, Log: log, PerUser: 2})
	defer out.Close()
	c.Reach.Callers[0].UIDs = []uint32{uint32(os.Getuid()), other}
	if errs := out.Apply(florete.Manifest{TrustDomain: agenttest.Domain, Forwarder: c.Reach}); len(errs) > 0 {
		t.Fatal(errs)
	}

	open := func() (net.Conn, error) {
		conn, err := net.Dial("tcp", c.Local)
		if err != nil { // refused as soon as it was there
			return nil, err
		}
		t.Cleanup(func() { conn.Close() })
		conn.SetDeadline(time.Now().Add(10 * time.Second))
		b := []byte{'x'}
		if _, err = conn.Write(b); err == nil {
			_, err = io.ReadFull(conn, b)
		}
		return conn, err
	}
	first, err := open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(); err != nil {
		t.Fatal(err)
	}
	if _, err := open(); err == nil {
		t.Error("a third is let through")
	}
	if n := counted.Summary().Refusals["too-many"]; n != 1 {
		t.Errorf("%d refusals, want 1", n)
	}
	if err := agenttest.DialAs(t, other, c.Local); err != nil {
		t.Errorf("another user: %v", err)
	}
	first.Close()
	for until := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := open(); err == nil {
			break
		}
		if time.Now().After(until) {
			t.Fatal("refused after one has ended")
		}
	}
}
