package transport_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
)

// replicas returns forwarders that publish outline, and the pool and route of a caller.
func replicas(t *testing.T, n int) ([]*server, *transport.Pool, transport.Route) {
	t.Helper()
	ca := kit.NewCA()
	r := route(t, outline)
	var all []*server
	for range n {
		s := &server{}
		s.start(t, host(t, "ursula", ca, outline))
		all = append(all, s)
		r.Endpoints = append(r.Endpoints, document.Addresses{s.addr})
	}
	laptop := host(t, "laptop", ca, alice)
	return all, pool(t, func() *hostdir.SVIDSet { return laptop }), r
}

// open opens a stream that is served. It ends with the test unless it is released.
func open(t *testing.T, p *transport.Pool, r transport.Route) *transport.Stream {
	t.Helper()
	st, err := p.Open(t.Context(), r, wire.TCP)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Release)
	ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
	defer cancel()
	if err := st.Answer(ctx); err != nil {
		t.Fatal(err)
	}
	return st
}

func streams(all []*server) (n []int64) {
	for _, s := range all {
		n = append(n, s.streams.Load())
	}
	return n
}

// TestSpread checks that streams of one caller go to all healthy endpoints in about equal shares,
// whether they stay open or come one after the other.
func TestSpread(t *testing.T) {
	const total, servers = 300, 3
	for name, hold := range map[string]bool{"open at the same time": true, "one after the other": false} {
		t.Run(name, func(t *testing.T) {
			all, p, r := replicas(t, servers)
			p.EquallyFar()
			for range total {
				if st := open(t, p, r); !hold {
					st.Release()
				}
			}
			for i := range all {
				if c := all[i].accepted.Load(); c != 1 {
					t.Errorf("endpoint %d has %d connections, want 1", i, c)
				}
			}
			if n := streams(all); slices.Min(n) < total/servers/2 || slices.Max(n) > total/servers*3/2 {
				t.Errorf("of %d streams, the endpoints have %v, want about %d each", total, n, total/servers)
			}
		})
	}
}

// TestLoad checks that an endpoint with more streams than others gets none until they have as many.
func TestLoad(t *testing.T) {
	all, p, r := replicas(t, 2)
	p.EquallyFar()
	for range 40 {
		open(t, p, r)
	}
	if n := streams(all); n[0]-n[1] > 2 || n[1]-n[0] > 2 {
		t.Errorf("%v streams, want as many at each", n)
	}
}

// TestLatency checks that the time of an endpoint's answers is remembered. TestSlow checks the
// effect.
func TestLatency(t *testing.T) {
	const delay = 60 * time.Millisecond
	all, p, r := replicas(t, 1)
	all[0].delay.Store(int64(delay))
	open(t, p, r).Release()
	if got := p.Latency(r); got < delay {
		t.Errorf("latency %s, want %s or more", got, delay)
	}
}

// TestFewConnections checks that a service on many hosts costs each caller few connections. The
// time to connect does not count here, since another endpoint may be connected to meanwhile.
func TestFewConnections(t *testing.T) {
	laptop := host(t, "laptop", kit.NewCA(), alice)
	p, r := pool(t, func() *hostdir.SVIDSet { return laptop }), route(t, outline, "h1:1", "h2:1", "h3:1", "h4:1", "h5:1", "h6:1", "h7:1", "h8:1")
	first := map[string]int{}
	for range 1000 {
		first[p.Order(r)[0]]++
	}
	if len(first) != 4 {
		t.Errorf("streams go to %v, want four endpoints", first)
	}
}

// TestDeadEndpoint checks that a new connection is made beside a dead endpoint, long before it
// counts as failed, however many addresses it has, and that later streams do not try it.
func TestDeadEndpoint(t *testing.T) {
	_, p, r := replicas(t, 1)
	p.InOrder()
	r.Endpoints = append([]document.Addresses{{silent(t), silent(t), silent(t)}}, r.Endpoints...)
	open(t, p, r).Release()
	if n := p.Failures(r); n != 0 {
		t.Errorf("the stream was opened after %d failures of the dead endpoint, want it not to wait for one", n)
	}
	for range 20 {
		if fresh, err := p.Probe(t.Context(), r); fresh || err != nil {
			t.Errorf("a further stream: a new connection is made: %v, %v; want the one there is", fresh, err)
		}
	}
}

// TestFailedEndpointIsAvoided checks that while one endpoint refuses, all streams go to another,
// also those that are opened at the same time.
func TestFailedEndpointIsAvoided(t *testing.T) {
	all, p, r := replicas(t, 3)
	all[0].broken.Store(true)
	failed := 0
	for range 60 {
		if try(t, p, r) != nil {
			failed++
		}
	}
	if failed > 1 {
		t.Errorf("%d of 60 streams met the endpoint that refuses, want 1 at most", failed)
	}
}

// relay forwards UDP to an address until it is cut.
func relay(t *testing.T, to string) (addr string, cut func()) {
	t.Helper()
	front, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	back, err := net.Dial("udp", to)
	if err != nil {
		t.Fatal(err)
	}
	var caller atomic.Pointer[net.Addr]
	var silent atomic.Bool
	pass := func(read func([]byte) (int, error), write func([]byte)) {
		for buf := make([]byte, 1<<16); ; {
			n, err := read(buf)
			if err != nil {
				return
			}
			if !silent.Load() {
				write(buf[:n])
			}
		}
	}
	var running sync.WaitGroup
	running.Go(func() {
		pass(func(b []byte) (int, error) {
			n, from, err := front.ReadFrom(b)
			caller.Store(&from)
			return n, err
		}, func(b []byte) { back.Write(b) })
	})
	running.Go(func() { pass(back.Read, func(b []byte) { front.WriteTo(b, *caller.Load()) }) })
	t.Cleanup(func() { front.Close(); back.Close(); running.Wait() })
	return front.LocalAddr().String(), func() { silent.Store(true) }
}

// TestSilentEndpoint checks that a host that vanishes silently gets no new streams, long before the
// connection to it ends.
func TestSilentEndpoint(t *testing.T) {
	ca := kit.NewCA()
	var gone, s server
	gone.start(t, host(t, "raishan", ca, outline))
	s.start(t, host(t, "ursula", ca, outline))
	laptop := host(t, "laptop", ca, alice)
	var table usage.Table
	ctx, cancel := context.WithCancel(t.Context())
	var shedding sync.WaitGroup
	shedding.Go(func() { table.Shed(ctx) })
	t.Cleanup(func() { cancel(); shedding.Wait() })
	p, err := transport.NewPool(func() *hostdir.SVIDSet { return laptop }, &table)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	p.InOrder()
	p.EquallyFar()
	addr, cut := relay(t, gone.addr)
	open(t, p, route(t, outline, addr)).Release()
	r := route(t, outline, addr, s.addr)
	if first := p.Order(r)[0]; first != addr {
		t.Fatalf("%s comes first, want %s", first, addr)
	}
	cut()
	kit.Eventually(t, "new streams to go elsewhere", func() bool { return p.Order(r)[0] != addr })
	if rows := table.Rows(); len(rows) != 1 || rows[0].Remote != addr {
		t.Errorf("connections %+v, want that to %s: it ended before it was avoided", rows, addr)
	}
	open(t, p, r).Release()
	if s.streams.Load() == 0 {
		t.Error("the stream did not go to the host that answers")
	}
}
