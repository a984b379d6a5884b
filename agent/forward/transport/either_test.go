package transport_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
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
	"github.com/florete/florete/tests/kit"
)

// echo is a published service outline, over QUIC and TCP, that returns all bytes.
type echo struct {
	quic, tcp string
	overTCP   atomic.Int64 // connections
	last      atomic.Pointer[transport.Incoming]
}

type listener interface {
	Accept() (*transport.Incoming, error)
	Stop()
	Close()
	Addr() net.Addr
}

func newEcho(t *testing.T, ca *kit.CA, ip string) *echo {
	t.Helper()
	return newService(t, ca, ip, func(st wire.Stream) { io.Copy(st, st) })
}

// newService starts a service with another answer than an echo.
func newService(t *testing.T, ca *kit.CA, ip string, answer func(wire.Stream)) *echo {
	t.Helper()
	set := host(t, "ursula", ca, outline)
	config := transport.Server{
		Addr: net.JoinHostPort(ip, "0"), Lookup: registry(t).Lookup, Identities: func() *hostdir.SVIDSet { return set },
		Rejected: func(r transport.Rejection) { t.Logf("rejected: %+v", r) },
	}
	e := &echo{}
	overQUIC, err := config.Listen()
	if err != nil {
		t.Fatal(err)
	}
	overTCP, err := config.ListenTCP()
	if err != nil {
		t.Fatal(err)
	}
	e.quic, e.tcp = overQUIC.Addr().String(), overTCP.Addr().String()
	for _, ln := range []listener{overQUIC, overTCP} {
		var serving sync.WaitGroup
		ended, end := context.WithCancel(context.Background())
		serving.Go(func() {
			for {
				in, err := ln.Accept()
				if err != nil {
					return
				}
				if in.Transport == document.OverTCP {
					e.overTCP.Add(1)
				}
				e.last.Store(in)
				serving.Go(func() {
					defer context.AfterFunc(ended, func() { in.Close(wire.Stopping) })()
					serve(in, &serving, answer)
				})
			}
		})
		t.Cleanup(func() { ln.Stop(); end(); serving.Wait(); ln.Close() })
	}
	return e
}

func serve(in *transport.Incoming, serving *sync.WaitGroup, answer func(wire.Stream)) {
	for {
		st, err := in.AcceptStream()
		if err != nil {
			return
		}
		serving.Go(func() {
			defer st.Close()
			if _, err := wire.Read(st, wire.TCP); err == nil {
				st.Write([]byte{wire.Connected})
				answer(st)
			}
		})
	}
}

// border is one address for QUIC and TCP, at which UDP may be dropped.
type border struct {
	addr    string
	drop    atomic.Bool
	lose    atomic.Bool  // every other packet that is large
	in, out atomic.Int64 // size above which datagrams are dropped, to the forwarder and from it; 0 for none
	forgets atomic.Bool  // if true, it forgets once which peer is behind which port
	rebound atomic.Int64
}

// passes reports whether a datagram is small enough.
func passes(size int, limit *atomic.Int64) bool {
	return limit.Load() == 0 || int64(size) <= limit.Load()
}

func newBorder(t *testing.T, e *echo) *border {
	t.Helper()
	udp, tcp := both(t)
	b := &border{addr: udp.LocalAddr().String()}
	t.Cleanup(func() { udp.Close(); tcp.Close() })
	go b.datagrams(udp, e.quic)
	go func() {
		for {
			here, err := tcp.Accept()
			if err != nil {
				return
			}
			there, err := net.Dial("tcp", e.tcp)
			if err != nil {
				here.Close()
				continue
			}
			go func() { defer there.Close(); io.Copy(there, here) }()
			go func() { defer here.Close(); io.Copy(here, there) }()
		}
	}()
	return b
}

// both listens on one port over UDP and TCP.
func both(t *testing.T) (net.PacketConn, net.Listener) {
	t.Helper()
	for {
		udp, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if tcp, err := net.Listen("tcp", udp.LocalAddr().String()); err == nil {
			return udp, tcp
		}
		udp.Close()
	}
}

func (b *border) datagrams(front net.PacketConn, to string) {
	behind := map[string]net.Conn{}
	defer func() {
		for _, c := range behind {
			c.Close()
		}
	}()
	for n, buf := 0, make([]byte, 1<<16); ; n++ {
		size, from, err := front.ReadFrom(buf)
		if err != nil {
			return
		}
		if b.drop.Load() || b.lose.Load() && size > 1000 && n%2 == 0 || !passes(size, &b.in) {
			continue
		}
		if b.forgets.Swap(false) {
			for _, c := range behind {
				c.Close()
			}
			clear(behind)
			b.rebound.Add(1)
		}
		c := behind[from.String()]
		if c == nil {
			if c, err = net.Dial("udp", to); err != nil {
				return
			}
			behind[from.String()] = c
			go func() {
				for buf := make([]byte, 1<<16); ; {
					size, err := c.Read(buf)
					if errors.Is(err, net.ErrClosed) {
						return
					}
					if err == nil && !b.drop.Load() && passes(size, &b.out) {
						front.WriteTo(buf[:size], from)
					}
				}
			}()
		}
		c.Write(buf[:size])
	}
}

// network is a caller, a border and an echo behind it.
type network struct {
	*border
	ca    *kit.CA
	echo  *echo
	pool  *transport.Pool
	table *usage.Table
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	return newNetworkAt(t, "127.0.0.1")
}

// newNetworkAt returns a network whose echo has an address.
func newNetworkAt(t *testing.T, ip string) *network {
	t.Helper()
	ca := kit.NewCA()
	n := &network{ca: ca, echo: newEcho(t, ca, ip), table: &usage.Table{}}
	n.border = newBorder(t, n.echo)
	laptop := host(t, "laptop", ca, alice)
	var err error
	if n.pool, err = transport.NewPool(func() *hostdir.SVIDSet { return laptop }, n.table); err != nil {
		t.Fatal(err)
	}
	n.pool.RetryQUIC(time.Second)
	t.Cleanup(n.pool.Close)
	return n
}

// open opens a stream and waits for the answer.
func (n *network) open(t *testing.T, over document.Transport) (*transport.Stream, error) {
	t.Helper()
	r := route(t, outline, n.addr)
	r.Transport = over
	st, err := n.pool.Open(t.Context(), r, wire.TCP)
	if err != nil {
		return nil, err
	}
	if err := st.Answer(t.Context()); err != nil {
		st.Release()
		return nil, err
	}
	return st, nil
}

// exchange sends bytes and expects them back.
func exchange(t *testing.T, st *transport.Stream, size int) {
	t.Helper()
	st.SetDeadline(time.Now().Add(kit.Patience))
	defer st.SetDeadline(time.Time{})
	sent := make([]byte, size)
	rand.Read(sent)
	go st.Write(sent)
	got := make([]byte, size)
	if _, err := io.ReadFull(st, got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, sent) {
		t.Fatal("other bytes came back")
	}
}

func finish(t *testing.T, st *transport.Stream) {
	t.Helper()
	st.Close()
	if b, err := io.ReadAll(st); len(b) > 0 || err != nil {
		t.Fatalf("%d bytes more, %v", len(b), err)
	}
	st.Release()
}

// goes opens a stream, exchanges a message, and returns the transport that carried it.
func (n *network) goes(t *testing.T, over document.Transport) document.Transport {
	t.Helper()
	st, err := n.open(t, over)
	if err != nil {
		t.Fatal(err)
	}
	defer finish(t, st)
	exchange(t, st, 5000)
	return st.Transport()
}

func (n *network) wait(t *testing.T, over document.Transport) {
	t.Helper()
	kit.Eventually(t, fmt.Sprintf("streams over %s", over), func() bool { return n.goes(t, document.AnyTransport) == over })
}

// TestQUICComesFirst checks that streams go over QUIC if both transports lead to a forwarder, and
// over the configured one if there is one.
func TestQUICComesFirst(t *testing.T) {
	n := newNetwork(t)
	for _, c := range []struct{ over, want document.Transport }{
		{document.AnyTransport, document.OverQUIC},
		{document.OverTCP, document.OverTCP},
		{document.OverQUIC, document.OverQUIC},
	} {
		if got := n.goes(t, c.over); got != c.want {
			t.Errorf("wanted %q, went over %s", c.over, got)
		}
	}
	if f := n.pool.Fallbacks(); len(f) > 0 {
		t.Errorf("fallbacks %+v", f)
	}
}

// TestUDPBlocked checks that streams go over TCP if UDP never passed, without a wait from the
// second stream on, and over QUIC once UDP passes.
func TestUDPBlocked(t *testing.T) {
	n := newNetwork(t)
	n.drop.Store(true)
	if got := n.goes(t, document.AnyTransport); got != document.OverTCP {
		t.Fatalf("went over %s", got)
	}
	f := n.pool.Fallbacks()
	if len(f) != 1 || f[0].Forwarder[0] != n.addr || !strings.Contains(f[0].Reason, "no answer over UDP") || f[0].Retry.IsZero() {
		t.Errorf("fallbacks %+v", f)
	}
	r := route(t, outline, n.addr)
	r.Transport = document.OverQUIC
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond) // nothing else ends the wait for dropped packets
	defer cancel()
	if _, err := n.pool.Probe(ctx, r); err == nil {
		t.Error("UDP leads there")
	}
	n.drop.Store(false)
	n.wait(t, document.OverQUIC)
	if f := n.pool.Fallbacks(); len(f) > 0 {
		t.Errorf("fallbacks %+v", f)
	}
}

// TestUDPFallsSilent checks that new streams go over TCP when a QUIC connection falls silent, while
// its open streams wait, and continue once packets pass again.
func TestUDPFallsSilent(t *testing.T) {
	n := newNetwork(t)
	old, err := n.open(t, document.AnyTransport)
	if err != nil {
		t.Fatal(err)
	}
	exchange(t, old, 100<<10)
	n.drop.Store(true)
	unanswered, err := n.pool.Open(t.Context(), route(t, outline, n.addr), wire.TCP)
	if err != nil {
		t.Fatal(err)
	}
	if err := unanswered.Answer(t.Context()); !errors.Is(err, transport.ErrLost) {
		t.Errorf("a stream without answer ended with %v", err)
	}
	unanswered.Release()
	if got := n.goes(t, document.AnyTransport); got != document.OverTCP {
		t.Errorf("went over %s", got)
	}
	if f := n.pool.Fallbacks(); len(f) != 1 || !strings.Contains(f[0].Reason, "nothing came over UDP") {
		t.Errorf("fallbacks %+v", f)
	}
	n.drop.Store(false)
	exchange(t, old, 100<<10)
	finish(t, old)
	n.wait(t, document.OverQUIC)
}

// TestUDPLoses checks that TCP takes over if half of the UDP packets are lost.
func TestUDPLoses(t *testing.T) {
	n := newNetwork(t)
	st, err := n.open(t, document.AnyTransport)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Release()
	n.lose.Store(true)
	go io.Copy(io.Discard, st)
	stop := make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() {
		for {
			select {
			case <-stop:
				transport.Reset(st, wire.Reset)
				return
			default:
			}
			if _, err := st.Write(make([]byte, 10<<10)); err != nil {
				return
			}
		}
	})
	n.wait(t, document.OverTCP)
	if f := n.pool.Fallbacks(); len(f) != 1 || !strings.Contains(f[0].Reason, "packets over UDP were lost") {
		t.Errorf("fallbacks %+v", f)
	}
	close(stop)
	sending.Wait()
}

// TestTCPConnectionsAreReused checks that successive streams share one connection, and that streams
// open at the same time need one each.
func TestTCPConnectionsAreReused(t *testing.T) {
	n := newNetwork(t)
	for range 20 {
		n.goes(t, document.OverTCP)
	}
	if got := n.echo.overTCP.Load(); got != 1 {
		t.Errorf("%d connections for streams one after another", got)
	}
	for range 3 {
		var open []*transport.Stream
		for range 8 {
			st, err := n.open(t, document.OverTCP)
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, st)
		}
		for _, st := range open {
			exchange(t, st, 1000)
			finish(t, st)
		}
	}
	if got := n.echo.overTCP.Load(); got != 8 {
		t.Errorf("%d connections for 8 streams at a time", got)
	}
	rows := n.table.Rows()
	if len(rows) != 1 || rows[0].Transport != document.OverTCP || rows[0].Opened != 44 || rows[0].Streams != 0 {
		t.Errorf("rows %+v", rows)
	}
}
