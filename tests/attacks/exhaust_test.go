//go:build !race

// The race detector would make the attacker too slow. tests/run therefore runs these tests without
// it.

package attacks

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/local"
)

// TestExhaustion makes Alice, who has access, use as much of the resources of the forwarder of host
// b as she can. Other callers must still be served meanwhile. At the end the forwarder must have
// returned the memory.
func TestExhaustion(t *testing.T) {
	run(t, []attack{
		{
			name:    "4500 streams full of bytes to a service that does not read",
			try:     bounded(560, 80, anyTransport, overAny(stall)),
			refusal: "refused: busy",
		},
		{
			name:    "streams opened and reset as fast as can be",
			try:     bounded(300, 80, anyTransport, overAny(churn)),
			refusal: transport.ErrFull.Error(),
		},
		{
			name:    "streams over TCP opened and reset as fast as can be",
			try:     bounded(300, 120, document.OverTCP, over(document.OverTCP, churn)),
			refusal: "slowed down",
		},
		{
			name:    "700 connections that do nothing",
			try:     bounded(160, 80, anyTransport, idle),
			refusal: "refused: busy",
		},
		{
			name:    "connections over TCP that begin no handshake, as fast as can be",
			try:     bounded(160, 80, document.OverTCP, mute),
			refusal: "closed",
		},
		{
			name:    "4500 streams over TCP that stand still",
			try:     bounded(400, 120, document.OverTCP, still),
			refusal: "refused: busy",
		},
		{
			name:    "100 streams over TCP full of bytes to a service that does not read",
			try:     bounded(200, 120, document.OverTCP, over(document.OverTCP, stall)),
			refusal: "stalled",
		},
	})
}

// stall is an attack that sends as much data as possible to a service that never reads.
func stall(t *testing.T, c *cluster, over document.Transport) error {
	const most = 4 << 30
	var sent atomic.Int64
	var refused atomic.Pointer[error] // the first refusal
	var all sync.WaitGroup
	b := make([]byte, 32<<10)
	pools, each := 3, 1500
	if over == document.OverTCP { // over TCP the kernel has the windows
		pools, each = 1, 100
	}
	for range pools {
		p := c.pool(t)
		for range each {
			st, err := c.openOver(t, p, "user/alice", "deaf", over)
			if err != nil {
				refused.CompareAndSwap(nil, &err)
				break
			}
			all.Go(func() {
				defer st.Release()
				for sent.Load() < most {
					n, err := st.Write(b)
					sent.Add(int64(n))
					if err != nil {
						err = st.Explain(err)
						refused.CompareAndSwap(nil, &err)
						return
					}
				}
			})
		}
		defer p.Close()
	}
	if over == document.OverTCP {
		for last := int64(-1); last != sent.Load() && sent.Load() < most; { // until no more data is accepted
			last = kit.Settled(sent.Load)
		}
	} else {
		kit.Eventually(t, "it to be refused", func() bool { return refused.Load() != nil || sent.Load() >= most })
	}
	t.Logf("%d MB sent", sent.Load()>>20)
	if over == document.OverTCP && sent.Load() < most {
		return errors.New("stalled")
	}
	if err := refused.Load(); err != nil {
		return *err
	}
	return nil
}

// churn is an attack that opens streams and resets them at once, for a while.
func churn(t *testing.T, c *cluster, over document.Transport) error {
	const (
		connections = 12
		lasting     = 15 * time.Second
		rate        = 2048 // streams of a caller that are ended before the answer, per second
	)
	c.letIn(t, over)
	var refused atomic.Pointer[error] // the first refusal
	var opened atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for range connections {
		p := c.pool(t)
		all.Go(func() {
			defer p.Close()
			for time.Since(began) < lasting {
				st, err := c.openOver(t, p, "user/alice", "echo", over)
				if err == nil {
					transport.Reset(st.Stream, wire.Reset)
					st.Release()
					opened.Add(1)
					continue
				}
				refused.CompareAndSwap(nil, &err)
				var busy *transport.RefusedError
				if !errors.Is(err, transport.ErrFull) && !(errors.As(err, &busy) && busy.Code == wire.Busy) {
					t.Error(err)
					return
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	all.Wait()
	t.Logf("%d streams in %s", opened.Load(), lasting)
	if over == document.OverTCP { // each stream is served, and remains until the other side has finished
		return errors.New("slowed down")
	}
	if most := int64(connections*transport.MaxStreams + rate*(lasting/time.Second+2)); opened.Load() > most {
		t.Errorf("%d streams, want at most %d", opened.Load(), most)
	}
	if err := refused.Load(); err != nil {
		return *err
	}
	return nil
}

// letIn waits until Alice is admitted again. A caller that used much memory is refused for a while.
func (c *cluster) letIn(t *testing.T, over document.Transport) {
	t.Helper()
	p := c.pool(t)
	defer p.Close()
	kit.Succeeds(t, "alice to be let in", func() error {
		st, err := c.openOver(t, p, "user/alice", "echo", over)
		if err == nil {
			err = st.Answer(t.Context())
			transport.Reset(st.Stream, wire.Reset)
			st.Release()
		}
		return err
	})
}

// idle is an attack that opens connections and does nothing with them.
func idle(t *testing.T, c *cluster) (refused error) {
	in := 0
	for range 700 {
		p := c.pool(t)
		defer p.Close()
		st, err := c.open(t, p, "user/alice", "echo")
		if err == nil {
			err = st.Answer(t.Context())
		}
		if err != nil {
			refused = err
			continue
		}
		in++
		transport.Reset(st.Stream, wire.Reset)
		st.Release()
	}
	if in < 512 { // some may end meanwhile and make room for others
		t.Errorf("%d connections, want 512", in)
	}
	return refused
}

// mute is an attack that opens TCP connections and sends nothing on them, for a while.
func mute(t *testing.T, c *cluster) (closed error) {
	var open []net.Conn // the oldest is first
	defer func() {
		for _, conn := range open {
			conn.Close()
		}
	}()
	for began := time.Now(); time.Since(began) < 5*time.Second; {
		conn, err := net.Dial("tcp", c.b.Manifest.Forwarder.Listen[0])
		if err != nil {
			return err
		}
		if open = append(open, conn); len(open) > 2000 {
			open[0].Close()
			open = open[1:]
		}
	}
	open[0].SetReadDeadline(time.Now().Add(local.Limit))
	if _, err := open[0].Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("closed: %w", err)
	}
	return nil
}

// still is an attack that opens streams over TCP, each on its own connection, and leaves them open.
func still(t *testing.T, c *cluster) (refused error) {
	p := c.pool(t)
	defer p.Close()
	in := 0
	for range 4500 {
		st, err := c.openOver(t, p, "user/alice", "echo", document.OverTCP)
		if err == nil {
			err = st.Answer(t.Context())
		}
		if err != nil {
			return err
		}
		defer st.Release()
		defer transport.Reset(st.Stream, wire.Reset)
		in++
	}
	t.Logf("%d streams", in)
	return nil
}

// pool returns a pool of connections to forwarders, like that of the forwarder of host c.
func (c *cluster) pool(t *testing.T) *transport.Pool {
	t.Helper()
	known, problems := hostdir.LoadSVIDs(c.c.Layout(), c.c.Manifest, &hostdir.SVIDSet{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	p, err := transport.NewPool(func() *hostdir.SVIDSet { return known }, &usage.Table{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const anyTransport = document.AnyTransport

func (c *cluster) open(t *testing.T, p *transport.Pool, caller, service string) (*transport.Stream, error) {
	t.Helper()
	return c.openOver(t, p, caller, service, anyTransport)
}

func (c *cluster) openOver(t *testing.T, p *transport.Pool, caller, service string, over document.Transport) (*transport.Stream, error) {
	t.Helper()
	return c.openFor(t, p, caller, service, over, wire.TCP)
}

func (c *cluster) openFor(t *testing.T, p *transport.Pool, caller, service string, over document.Transport, carries wire.StreamType) (*transport.Stream, error) {
	t.Helper()
	target, err := spiffe.Dial(kit.ID("service/" + service))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), local.Limit)
	defer cancel()
	return p.Open(ctx, transport.Route{Caller: kit.ID(caller), Target: target, Endpoints: []document.Addresses{c.b.Manifest.Forwarder.Listen}, Transport: over}, carries)
}

// bounded limits the memory that an attack may cost. It returns a test that performs the attack
// try. During the attack, the forwarder of host b may use the memory peak, and afterwards the
// memory after, both in MiB.
func bounded(peak, after int64, over document.Transport, try func(*testing.T, *cluster) error) func(*testing.T, *cluster) error {
	return func(t *testing.T, c *cluster) error {
		before, highest := c.logged(t), int64(0)
		ctx, cancel := context.WithCancel(t.Context())
		var watching sync.WaitGroup
		watching.Go(func() {
			for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
				highest = max(highest, c.rss(t))
			}
		})
		watching.Go(func() { c.others(ctx, t, over) })
		err := try(t, c)
		cancel()
		watching.Wait()
		if highest > peak {
			t.Errorf("peak %d MiB, want at most %d", highest, peak)
		}
		ended := time.Now()
		kit.Succeeds(t, "memory to be given back", func() error {
			if n := c.rss(t); n > after {
				return fmt.Errorf("%d MiB, want %d", n, after)
			}
			return nil
		})
		if n := c.logged(t) - before; n > 64<<10 {
			t.Errorf("b's forwarder logged %d bytes, want few", n)
		}
		t.Logf("peak %d MiB, %d MiB %s afterwards", highest, c.rss(t), time.Since(ended).Round(time.Second))
		return err
	}
}

// others checks that other callers are served during an attack. Until ctx ends, it opens one
// connection after the other and expects no refusal. On a busy machine it may try a connection
// again, as every process does. The forwarder of host c may try again after it has changed to TCP.
func (c *cluster) others(ctx context.Context, t *testing.T, over document.Transport) {
	times, again := 0, 0
	for ctx.Err() == nil {
		p := c.pool(t)
		refused := error(nil)
		err := kit.Poll(t.Context(), func() error {
			st, err := c.openOver(t, p, "user/carol", "echo", over)
			if err == nil {
				err = st.Answer(t.Context())
				transport.Reset(st.Stream, wire.Reset)
				st.Release()
			}
			var late net.Error
			if err == nil || errors.Is(err, transport.ErrLost) || errors.As(err, &late) && late.Timeout() {
				if err != nil {
					again++
				}
				return err
			}
			refused = err
			return nil
		})
		p.Close()
		switch {
		case t.Context().Err() != nil:
			return // the test has already failed
		case err != nil || refused != nil:
			t.Errorf("another caller, after %d that were let in: %v", times, errors.Join(err, refused))
			return
		case ctx.Err() == nil:
			times++
		}
	}
	t.Logf("another caller: %d times, %d of them tried again", times, again)
	if times == 0 {
		t.Error("no other caller was let in meanwhile")
	}
}

// logged returns the number of bytes that the forwarder of host b has written to its log.
func (c *cluster) logged(t *testing.T) int64 {
	t.Helper()
	info, err := os.Stat(c.b.Log("agent"))
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// rss returns the resident memory of the forwarder of host b in MiB.
func (c *cluster) rss(t *testing.T) (kib int64) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.b.PID("agent")))
	if err != nil {
		t.Error(err)
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kib); n == 1 {
			return kib >> 10
		}
	}
	return 0
}
