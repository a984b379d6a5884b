package splice_test

import (
	"errors"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/florete/florete/agent/forward/splice"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// reader counts the bytes read from a socket in the way of package splice.
type reader struct {
	socket       *splice.Socket
	received     atomic.Int64
	parked, over atomic.Bool
}

func read(t *testing.T, lot *splice.Lot, c splice.Parkable) *reader {
	t.Helper()
	r := &reader{}
	var err error
	if r.socket, err = lot.Add(c, r.read, nil); err != nil {
		t.Fatal(err)
	}
	go r.read()
	return r
}

func (r *reader) read() {
	r.parked.Store(false)
	for in := usage.NewReader(r.socket.Raw()); ; {
		b, n, err := in.Read(usage.LargeBuffer)
		r.socket.Progress()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			r.parked.Store(true)
			if err = r.socket.Park(); err == nil {
				return
			}
		}
		usage.PutBuffer(b)
		if n <= 0 {
			r.over.Store(true)
			return
		}
		r.received.Add(int64(n))
	}
}

// connected returns both ends of a connection.
func connected(t *testing.T) (here, there *net.TCPConn) {
	t.Helper()
	accepted := make(chan *net.TCPConn, 1)
	addr := agenttest.Upstream(t, func(c *net.TCPConn) {
		accepted <- c
		<-t.Context().Done()
	})
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn), <-accepted
}

// TestParked checks that no goroutine waits for idle sockets, and that bytes, the end, a reset and
// closing the socket locally are noticed.
func TestParked(t *testing.T) {
	var lot splice.Lot
	type pair struct {
		*reader
		here, there *net.TCPConn
	}
	var all []pair
	for range 100 {
		here, there := connected(t)
		all = append(all, pair{read(t, &lot, here), here, there})
	}
	for i, p := range all {
		kit.Eventually(t, "a socket to be idle", p.parked.Load)
		if i == len(all)-1 {
			kit.Eventually(t, "goroutines to end", func() bool { return runtime.NumGoroutine() < 230 }) // 200 are of the upstreams
		}
	}
	for i, p := range all {
		want := int64(0)
		switch i % 4 {
		case 0:
			p.there.Write([]byte("x"))
			kit.Eventually(t, "a byte", func() bool { return p.received.Load() == 1 })
			want = 1
			p.there.CloseWrite()
		case 1:
			p.there.CloseWrite()
		case 2:
			p.there.SetLinger(0)
			p.there.Close()
		case 3:
			p.here.Close()
			p.socket.Wake()
		}
		kit.Eventually(t, "the end", p.over.Load)
		if got := p.received.Load(); got != want {
			t.Errorf("socket %d has received %d bytes, want %d", i, got, want)
		}
		p.socket.Remove()
	}
}

// TestEmpty checks that a lot without sockets holds nothing.
func TestEmpty(t *testing.T) {
	before, files := runtime.NumGoroutine(), openFiles(t)
	var lot splice.Lot
	c, err := net.Dial("tcp", agenttest.Upstream(t, func(c *net.TCPConn) { c.Read(make([]byte, 1)) }))
	if err != nil {
		t.Fatal(err)
	}
	r := read(t, &lot, c.(*net.TCPConn))
	kit.Eventually(t, "a socket to be idle", r.parked.Load)
	c.Close()
	r.socket.Wake()
	kit.Eventually(t, "the end", r.over.Load)
	r.socket.Remove()
	kit.Eventually(t, "all to be given back", func() bool {
		return openFiles(t) <= files+1 && runtime.NumGoroutine() <= before+1 // of the upstream's listener
	})
}

func openFiles(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}
