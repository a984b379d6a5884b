package announce

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"golang.org/x/sys/unix"

	"github.com/florete/florete/agent/forward/splice"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/conns"
)

// Conn adapts the stream of a caller to net.Conn, which the HTTP server of net/http requires.
type Conn struct {
	wire.Stream
	caller           Caller
	received, sent   func(int)
	reading, writing sync.Mutex
	once             sync.Once
	closed           chan struct{}
	aborted          atomic.Bool
}

// NewConn returns a Conn for the stream of a caller. The Conn calls received with the number of
// bytes after each read from the caller, and sent after each write to the caller.
func NewConn(st wire.Stream, c Caller, received, sent func(int)) *Conn {
	return &Conn{Stream: st, caller: c, received: received, sent: sent, closed: make(chan struct{})}
}

func (c *Conn) LocalAddr() net.Addr  { return net.TCPAddrFromAddrPort(c.caller.To) }
func (c *Conn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.caller.From) }

func (c *Conn) Read(b []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	n, err := c.Stream.Read(b)
	c.received(n)
	return n, err
}

func (c *Conn) Write(b []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	n, err := c.Stream.Write(b)
	c.sent(n)
	return n, err
}

// CloseWrite ends the sending direction after all data was sent. If another goroutine is blocked in
// a write, CloseWrite resets the direction instead, and data is lost.
func (c *Conn) CloseWrite() error {
	if !c.writing.TryLock() {
		c.CancelWrite(quic.StreamErrorCode(wire.Reset))
		return nil
	}
	defer c.writing.Unlock()
	return c.Stream.Close()
}

// Close closes the connection. The caller still receives everything that was written.
func (c *Conn) Close() (err error) {
	c.once.Do(func() {
		err = c.CloseWrite()
		c.SetReadDeadline(time.Unix(1, 0))
		close(c.closed)
	})
	return err
}

// abort resets the stream in both directions. The caller then knows that the data it received is
// incomplete.
func (c *Conn) abort() {
	c.aborted.Store(true)
	c.CancelWrite(quic.StreamErrorCode(wire.Reset))
	c.CancelRead(quic.StreamErrorCode(wire.Reset))
}

// maxUnread is the number of bytes that a caller may still send after the connection is closed. If
// the caller sends more, the stream is reset. TCP would reset it after the first byte.
const maxUnread = 256 << 10

// finish waits after Close until the caller has closed its side too. If the stream were canceled
// earlier, the caller could lose data that it has not read yet.
func (c *Conn) finish() {
	c.reading.Lock()
	defer c.reading.Unlock()
	c.SetReadDeadline(time.Time{})
	if c.aborted.Load() {
		return
	}
	if _, err := io.CopyN(io.Discard, c.Stream, maxUnread); err == nil {
		c.CancelRead(quic.StreamErrorCode(wire.Reset))
	}
}

// single is a net.Listener that accepts one connection. It ends when that connection ends.
type single struct {
	conn  *Conn
	taken bool
}

func (s *single) Accept() (net.Conn, error) {
	if !s.taken {
		s.taken = true
		return s.conn, nil
	}
	<-s.conn.closed
	return nil, net.ErrClosed
}

func (s *single) Addr() net.Addr { return s.conn.LocalAddr() }
func (*single) Close() error     { return nil }

// open reports whether an idle connection to the service can carry another request. It returns
// false if the service has closed the connection, or has sent data without a request.
func open(c splice.Conn) bool {
	err := conns.Control(c, func(fd int) error {
		var b [1]byte
		_, _, err := unix.Recvfrom(fd, b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		return err
	})
	return err == unix.EAGAIN
}
