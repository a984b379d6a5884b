package tcpstream

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/forward/wire"
)

const (
	// settleTimeout is the time within which a reset of a stream must be answered. Unread data may
	// delay the reset and its answer. After this time the connection is reset.
	settleTimeout = 5 * time.Second
	// closeTimeout is the time limit for telling the other side why the connection was closed.
	closeTimeout = time.Second
)

var (
	errEnded = io.ErrUnexpectedEOF // the connection ended without a Close
	past     = time.Unix(1, 0)
)

// Conn is one end of a connection over TLS between two forwarders. It carries one stream at a time.
// The caller's end opens streams, and the other end accepts them.
type Conn struct {
	tls    *tls.Conn
	socket *Socket
	idle   func() // called when a stream may be opened; nil at the end that accepts streams
	ctx    context.Context
	cancel context.CancelCauseFunc

	reading chan struct{} // lock of the reader: holds one element while taken; guards in and left
	in      *bufio.Reader // has room for a complete frame of any type except Data
	left    int           // remaining bytes of the current Data frame

	writing sync.Mutex

	mu     sync.Mutex
	stream *Stream // current stream, or the last one
	next   quic.StreamID
	leave  bool // if true, no further stream is accepted
	ended  bool // if true, no further task is started
	tasks  sync.WaitGroup
}

// New returns a Conn over a TLS connection whose handshake is complete. The connection below TLS
// must be a *Socket. At the end that opens streams, idle is called whenever a stream has ended. At
// the other end, idle must be nil. The connection is counted in tasks until all its goroutines have
// ended.
func New(t *tls.Conn, idle func(), tasks *sync.WaitGroup) *Conn {
	c := &Conn{
		tls: t, socket: t.NetConn().(*Socket), idle: idle, reading: make(chan struct{}, 1),
		in: bufio.NewReaderSize(records{t}, wire.FrameHeader+wire.MaxControl),
	}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	tasks.Add(1)
	context.AfterFunc(c.ctx, func() {
		defer tasks.Done()
		c.tearDown()
	})
	return c
}

// Context returns a context that ends when the connection ends.
func (c *Conn) Context() context.Context { return c.ctx }

// LocalAddr returns the address of this side. If the connection leads through a relay, this is the
// local address of the connection to the relay.
func (c *Conn) LocalAddr() net.Addr { return c.socket.LocalAddr() }

// RemoteAddr returns the address of the other side. If the connection leads through a relay, this
// is the address of the relay.
func (c *Conn) RemoteAddr() net.Addr { return c.socket.RemoteAddr() }

// OpenStream opens a stream without waiting for the other side. The previous stream of the
// connection must have ended. OpenStream returns an error if the connection has ended.
func (c *Conn) OpenStream() (*Stream, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return nil, context.Cause(c.ctx)
	}
	return c.begin(), nil
}

// Rest prepares the connection for a time without streams, so that Usable can notice that the other
// side has closed it. Only the end that opens streams calls it.
func (c *Conn) Rest() { c.socket.watch() }

// Usable reports whether a connection without an open stream is still open, as far as this side
// knows.
func (c *Conn) Usable() bool { return c.ctx.Err() == nil && c.in.Buffered() == 0 && c.socket.idle() }

// begin creates the next stream. The caller holds the lock mu.
func (c *Conn) begin() *Stream {
	s := &Stream{conn: c, id: c.next, done: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancelCause(c.ctx)
	c.next += 4
	c.stream = s
	_ = c.tls.SetReadDeadline(time.Time{})
	return s
}

// AcceptStream waits until the previous stream has ended and the caller's end has opened another
// one, which it returns. It returns an error when the connection or ctx ends.
func (c *Conn) AcceptStream(ctx context.Context) (wire.Stream, error) {
	c.mu.Lock()
	before := c.stream
	c.mu.Unlock()
	if before != nil {
		select {
		case <-before.done:
		case <-c.ctx.Done():
			return nil, context.Cause(c.ctx)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	c.reading <- struct{}{}
	defer c.unlock()
	for {
		over, err := c.settle(before)
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		switch {
		case over && c.leave:
			c.mu.Unlock()
			c.end(&quic.ApplicationError{ErrorCode: quic.ApplicationErrorCode(wire.Stopping), ErrorMessage: wire.Stopping.String()})
			return nil, context.Cause(c.ctx)
		case over && c.left > 0:
			defer c.mu.Unlock()
			return c.begin(), nil
		}
		c.mu.Unlock()
	}
}

// Leave closes the connection with the code Stopping as soon as no stream is open. Only the end
// that accepts streams calls it. A stream that the other end opens at this moment is not served, so
// the other end can open it on another connection.
func (c *Conn) Leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leave = true
	if c.stream == nil || c.stream.over() {
		_ = c.tls.SetReadDeadline(past) // wakes up the goroutine in settle
	}
}

// settle reads a frame or some data after the stream is no longer read. The result over is true
// when both sides know that the stream has ended. The caller holds the lock reading.
func (c *Conn) settle(s *Stream) (over bool, err error) {
	c.mu.Lock()
	over = s == nil || s.over()
	done := over && (c.idle != nil || c.left > 0 || c.leave)
	if err = context.Cause(c.ctx); err == nil && !done {
		var at time.Time
		if s != nil && !s.received {
			at = s.deadline
		}
		err = c.tls.SetReadDeadline(at)
	}
	c.mu.Unlock()
	if err != nil || done {
		return over, err
	}
	if c.left > 0 {
		err = c.discard()
	} else {
		err = c.step()
	}
	switch {
	case err == nil:
		return false, nil
	case !errors.Is(err, os.ErrDeadlineExceeded) || c.ctx.Err() != nil:
		return false, c.fail(err)
	case s != nil && s.awaited():
		return false, c.kill(fmt.Errorf("%s does not end stream %d", c.RemoteAddr(), s.id))
	}
	return false, nil // another goroutine changed the state and woke this one up
}

// discard reads and drops data of a stream that is no longer read.
func (c *Conn) discard() error {
	b := usage.GetBuffer()
	defer usage.PutBuffer(b)
	n, err := c.in.Read(b[:min(len(b), c.left)])
	if c.left -= n; n > 0 {
		return nil
	}
	return err
}

// CloseWithError ends the connection and its stream, and sends the code and the reason to the other
// side. It does not block, and always returns nil.
func (c *Conn) CloseWithError(code quic.ApplicationErrorCode, reason string) error {
	c.end(&quic.ApplicationError{ErrorCode: code, ErrorMessage: reason})
	return nil
}

// end ends the connection and wakes up its reader.
func (c *Conn) end(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel(cause)
	_ = c.tls.SetReadDeadline(past)
}

// fail ends a broken connection, and returns the reason for which it ended.
func (c *Conn) fail(err error) error {
	if errors.Is(err, io.EOF) {
		err = errEnded
	}
	c.end(err)
	if c.closed() == nil {
		c.socket.Close()
	}
	return context.Cause(c.ctx)
}

// closed returns the error with which this side has closed the connection. It returns nil if this
// side has not closed it.
func (c *Conn) closed() *quic.ApplicationError {
	var app *quic.ApplicationError
	if errors.As(context.Cause(c.ctx), &app) && !app.Remote {
		return app
	}
	return nil
}

// kill ends the connection like fail, but the other side sees a reset.
func (c *Conn) kill(err error) error {
	_ = c.socket.SetLinger(0)
	return c.fail(err)
}

// tearDown tells the other side why the connection ended, and releases the connection's resources.
func (c *Conn) tearDown() {
	timer := time.AfterFunc(closeTimeout, func() { c.socket.Close() })
	defer timer.Stop()
	if app := c.closed(); app != nil {
		c.writing.Lock()
		if _, err := c.tls.Write(wire.AppendClose(nil, wire.Code(app.ErrorCode), app.ErrorMessage)); err == nil {
			_ = c.tls.CloseWrite()
			_ = c.socket.CloseWrite()
		}
		c.writing.Unlock()
		c.reading <- struct{}{}
		_ = c.socket.SetReadDeadline(time.Time{})
		_, _ = io.Copy(io.Discard, c.socket.lower) // closing with unread data would reset the connection and lose the reason
		c.unlock()
	}
	c.socket.Close()
	c.reading <- struct{}{}
	c.socket.release()
	c.unlock()
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	c.tasks.Wait()
}

func (c *Conn) unlock() { <-c.reading }

// task runs a function in a goroutine, for which tearDown waits. It does nothing if the connection
// has ended.
func (c *Conn) task(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.tasks.Go(f)
	}
}

// Stats returns the counters of the connection below TLS. If the other side has reset the
// connection, Stats also ends the Conn, because nothing else notices a reset while the connection
// is neither read nor written.
func (c *Conn) Stats() usage.Stats {
	s, err := c.socket.stats()
	if err != nil {
		_ = c.fail(err)
	}
	return s
}
