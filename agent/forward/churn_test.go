//go:build !race

// With the race detector this would take an hour. tests/run runs it without.

package forward_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// churned is three times the number of connections open at a time, so that leaked streams would end
// the test long before. In the long run it is so many that leaks of 200 bytes each are visible.
var churned = kit.Often(10*transport.MaxStreams, 3*transport.MaxStreams)

// TestGivesBack checks that many short connections, over one QUIC connection between forwarders or
// over TCP, leave no stream, goroutine, file or memory behind.
func TestGivesBack(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	for _, sort := range []churn{
		{"TCP, the caller ends first", churned / 2, startEcho, once(func(c *net.TCPConn) error {
			if err := agenttest.Ping(c); err != nil {
				return err
			}
			c.CloseWrite()
			return wantOnly(c, io.EOF)
		})},
		{"TCP, the service ends first", churned / 2, startHello, once(func(c *net.TCPConn) error {
			if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
				return err
			}
			return wantOnly(c, io.EOF)
		})},
		{"TCP, the caller resets", churned / 10, startEcho, once(func(c *net.TCPConn) error {
			rst(c)
			return nil
		})},
		{"TCP, the caller resets under way", churned / 10, startEcho, once(func(c *net.TCPConn) error {
			defer rst(c)
			return agenttest.Ping(c)
		})},
		{"TCP, the service resets", churned / 10, startResetting, once(func(c *net.TCPConn) error {
			return wantOnly(c, syscall.ECONNRESET)
		})},
		{"TCP, the service is gone", churned, startRefusing, once(func(c *net.TCPConn) error {
			return wantOnly(c, syscall.ECONNRESET)
		})},
		{"SOCKS5, the caller does not wait", churned / 10, startEcho, func(c *cluster) error {
			return with(c.SOCKS[alice], func(conn *net.TCPConn) error {
				conn.Write([]byte{5, 1, 0})
				if _, err := io.ReadFull(conn, make([]byte, 2)); err != nil {
					return err
				}
				conn.Write(connectTo("outline.demo.flor.rete", 80))
				rst(conn)
				return nil
			})
		}},
		{"UDP", churned, startUDPEcho, onceUDP},
	} {
		t.Run(sort.name, sort.run)
		if sort.name != "UDP" { // each session has a connection over TCP, until two minutes later
			t.Run("over TCP/"+sort.name, func(t *testing.T) {
				agenttest.Transport = document.OverTCP
				defer func() { agenttest.Transport = document.AnyTransport }()
				sort.times /= 10
				sort.run(t)
			})
		}
	}
}

// churn is a kind of short connections.
type churn struct {
	name  string
	times int
	start func(*testing.T) *cluster
	once  func(*cluster) error
}

func (x churn) run(t *testing.T) {
	c := x.start(t)
	repeat(t, churned/30, func() error { return x.once(c) }) // more UDP sessions than are let be open
	before := settled(t, c, footprint{})
	began := time.Now()
	repeat(t, x.times, func() error { return x.once(c) })
	t.Logf("%d in %s", x.times, time.Since(began).Round(time.Millisecond))
	after := settled(t, c, before)
	t.Logf("before %+v, after %+v", before, after)
	rows := peerConnections(t, c)
	if x.times >= churned/2 && len(rows) == 0 {
		t.Error("no connection between the forwarders, want one on each side")
	}
	for _, l := range rows {
		// A caller may go before it has a stream, a port may come again as the same session.
		if x.times >= churned/2 && l.Opened < int64(x.times)*9/10 || l.Full {
			t.Errorf("connection %+v, want %d streams over it", l, x.times)
		}
	}
}

// footprint is the resource use of the process.
type footprint struct {
	goroutines, files int
	heap              uint64
	streams, live     int64
}

// settled returns the footprint once it is no more than before, apart from memory that the runtime
// and the test keep for reuse.
func settled(t *testing.T, c *cluster, before footprint) (f footprint) {
	t.Helper()
	const slack = 8 << 20
	if before.goroutines > 0 {
		// There is none where every caller was gone before its stream was opened.
		kit.Eventually(t, "one connection between the forwarders at most", func() bool { return len(peerConnections(t, c)) <= 2 })
	}
	last := footprint{}
	// A connection over TCP waits a minute for another stream.
	kit.Succeeds(t, "no more than before", func() error {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		f = footprint{goroutines: runtime.NumGoroutine(), files: openFiles(t), heap: m.HeapAlloc + m.StackInuse}
		for _, h := range []*agenttest.Host{c.Ursula, c.Laptop} {
			r := report(t, h)
			f.live += r.Connections
			for _, l := range r.PeerConnections {
				f.streams += l.Streams
			}
		}
		switch {
		case before.goroutines == 0 && f.goroutines == last.goroutines && f.streams == last.streams:
			return nil
		case before.goroutines > 0 && f.goroutines <= before.goroutines+8 && f.files <= before.files+8 &&
			f.heap <= before.heap+slack && f.streams <= before.streams && f.live <= before.live:
			return nil
		}
		last = f
		return fmt.Errorf("before %+v, after %+v", before, f)
	})
	return f
}

func peerConnections(t *testing.T, c *cluster) (all []usage.Row) {
	t.Helper()
	for _, h := range []*agenttest.Host{c.Ursula, c.Laptop} {
		all = append(all, report(t, h).PeerConnections...)
	}
	return all
}

// repeat calls f n times, several at once.
func repeat(t *testing.T, n int, f func() error) {
	t.Helper()
	var left atomic.Int64
	left.Store(int64(n))
	var all sync.WaitGroup
	var failed sync.Once
	for range 16 {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				if err := f(); err != nil {
					failed.Do(func() { t.Errorf("after %d: %v", int64(n)-left.Load(), err) })
					left.Store(0)
				}
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

func with(addr string, f func(*net.TCPConn) error) error {
	c, err := net.Dial("tcp", addr)
	if errors.Is(err, syscall.ECONNRESET) {
		return nil // the kernel reports the refusal at once
	}
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(kit.Patience))
	return f(c.(*net.TCPConn))
}

func once(f func(*net.TCPConn) error) func(*cluster) error {
	return func(c *cluster) error { return with(c.Local, f) }
}

// wantOnly checks that a connection ends with a certain error.
func wantOnly(c net.Conn, end error) error {
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, end) {
		return fmt.Errorf("read %d bytes, %v, want %v", n, err, end)
	}
	return nil
}

func startOn(t *testing.T, upstream string) *cluster {
	t.Helper()
	c := newCluster(t, upstream)
	c.start(t)
	return c
}

func startEcho(t *testing.T) *cluster { return startOn(t, agenttest.Echo(t)) }

func startHello(t *testing.T) *cluster {
	return startOn(t, agenttest.Upstream(t, func(c *net.TCPConn) { c.Write([]byte("x")) }))
}

func startResetting(t *testing.T) *cluster {
	return startOn(t, agenttest.Upstream(t, func(c *net.TCPConn) { c.SetLinger(0) }))
}

func startRefusing(t *testing.T) *cluster { return startOn(t, agenttest.RefusingTCP(t)) }

func startUDPEcho(t *testing.T) *cluster {
	c := newUDPCluster(t, echoUDPAt(t, "127.0.0.1:0", nil).LocalAddr().String())
	c.start(t)
	return c
}

// onceUDP uses a session of its own: a new socket that sends once.
func onceUDP(c *cluster) error {
	conn, err := net.Dial("udp", c.Local)
	if err != nil {
		return err
	}
	defer conn.Close()
	// A reused port may belong to a session that is just being closed to make room for another. The
	// datagram is then lost.
	if exchangeIn(5*time.Second, conn, []byte("x")) == nil {
		return nil
	}
	return exchange(conn, []byte("x"))
}
