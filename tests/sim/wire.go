package sim

import (
	"bytes"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Link describes the faults of the simulated network between hosts and providers. If all its fields
// are zero, the network has no faults.
type Link struct {
	Latency time.Duration // maximum delay in one direction; each connection has its own. Zero means 20 ms
	Cuts    float64       // share of connections that are reset at some write, which loses its data
	Stalls  float64       // share of connections that fall silent at some write
}

// fate contains the faults of one connection. A fault occurs at a certain write. Writes at both
// ends are counted together.
type fate struct {
	latency    time.Duration
	cut, stall int // number of the write; zero for no fault
}

// writes is the number of writes among which the write of a fault is drawn. It is slightly more
// than a request needs, so that some connections end before their fault.
const writes = 12

func (l Link) fate(r *rand.Rand) fate {
	if l.Latency == 0 {
		l.Latency = 20 * time.Millisecond
	}
	f := fate{latency: 1 + time.Duration(r.Int64N(int64(l.Latency)))}
	cut, stall, at := r.Float64() < l.Cuts, r.Float64() < l.Stalls, 1+r.IntN(writes)
	switch {
	case cut:
		f.cut = at
	case stall:
		f.stall = at
	}
	return f
}

// wire is a simulated connection between a host and a provider.
type wire struct {
	fate
	host, provider string
	ends           [2]*conn
	written        atomic.Int32
}

func (w *wire) reset() {
	for _, c := range w.ends {
		c.in.reset()
	}
}

func (w *wire) stalls() {
	for _, c := range w.ends {
		c.in.stall()
	}
}

// conn is one end of a wire. It belongs to one life of a process. The process may die at each read
// and at each write.
type conn struct {
	*wire
	life          *life
	in, out       *pipe
	local, remote addr
	close         sync.Once
	closed        atomic.Bool
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.in.read(b)
	if c.closed.Load() {
		return 0, net.ErrClosed
	}
	if n > 0 && c.life.moment("read") != nil {
		return 0, syscall.ECONNRESET
	}
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	if c.closed.Load() {
		return 0, net.ErrClosed
	}
	if c.life.moment("write") != nil {
		return 0, syscall.ECONNRESET
	}
	switch int(c.written.Add(1)) {
	case c.cut:
		c.reset()
	case c.stall:
		c.stalls()
	}
	if err := c.out.write(bytes.Clone(b), c.latency); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Close closes the connection. The peer still receives the data that was sent before.
func (c *conn) Close() error {
	c.close.Do(func() {
		c.closed.Store(true)
		c.in.change(func() { c.in.broken = net.ErrClosed })
		_ = c.out.write(nil, c.latency)
	})
	return nil
}

func (c *conn) LocalAddr() net.Addr                { return c.local }
func (c *conn) RemoteAddr() net.Addr               { return c.remote }
func (c *conn) SetWriteDeadline(_ time.Time) error { return nil } // writes never wait
func (c *conn) SetDeadline(t time.Time) error      { return c.SetReadDeadline(t) }
func (c *conn) SetReadDeadline(t time.Time) error {
	c.in.change(func() { c.in.deadline = t })
	return nil
}

// addr is a simulated address. A provider has an address such as "forge:4600". The address of a
// host contains the number of its connection, such as "h01#17".
type addr string

func (a addr) Network() string { return "sim" }
func (a addr) String() string  { return string(a) }
