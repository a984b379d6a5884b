package tcpstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/wire"
)

// Stream is a stream on a Conn. It carries one TCP connection or UDP session between two
// forwarders, and implements wire.Stream.
type Stream struct {
	conn   *Conn
	id     quic.StreamID
	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the stream is no longer read

	// The following fields are guarded by conn.mu.
	readErr  error     // reason why the stream cannot be read; nil while it can
	sendErr  error     // reason why nothing more is sent; nil while sending is possible
	received bool      // the other side sends nothing more
	sent     bool      // this side has written that it sends nothing more
	settling bool      // a goroutine reads the connection until the stream is over
	deadline time.Time // time limit for the other side's answer to a reset
}

// TLS returns the TLS state of the connection that carries the stream.
func (s *Stream) TLS() tls.ConnectionState { return s.conn.tls.ConnectionState() }

func (s *Stream) StreamID() quic.StreamID  { return s.id }
func (s *Stream) Context() context.Context { return s.ctx }

// over reports whether both sides know that the stream has ended. The caller holds conn.mu.
func (s *Stream) over() bool { return s.received && s.sent && s.readErr != nil }

// awaited reports whether the time limit has passed without the other side ending the stream.
func (s *Stream) awaited() bool {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	return !s.received && !s.deadline.IsZero() && !time.Now().Before(s.deadline)
}

func (s *Stream) Read(b []byte) (n int, err error) {
	if err := s.lock(); err != nil {
		return 0, err
	}
	defer s.conn.unlock()
	if len(b) == 0 {
		return 0, nil
	}
	if err := s.await(); err != nil {
		return 0, err
	}
	return s.take(b), nil
}

// lock takes the lock conn.reading, which a goroutine must hold to read. If the stream is no longer
// read, lock returns the reason instead, because another goroutine may hold the lock until the next
// stream.
func (s *Stream) lock() error {
	select {
	case s.conn.reading <- struct{}{}: // a select with one case costs less than one with two
		return nil
	default:
	}
	select {
	case <-s.done:
	case s.conn.reading <- struct{}{}:
		return nil
	}
	return s.readError()
}

// Peek waits for the next byte and copies it to b without consuming it, so that the next Read
// returns it again.
func (s *Stream) Peek(b []byte) (int, error) {
	if err := s.lock(); err != nil {
		return 0, err
	}
	defer s.conn.unlock()
	if err := s.await(); err != nil {
		return 0, err
	}
	next, err := s.conn.in.Peek(1)
	return copy(b, next), err
}

// await waits until a byte is available. The caller holds the lock conn.reading.
func (s *Stream) await() error {
	c := s.conn
	for {
		if err := s.readError(); err != nil {
			return err
		}
		var err error
		if c.left == 0 {
			err = c.step()
		} else if _, err = c.in.Peek(1); err == nil {
			return nil
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			if reason := s.readError(); reason != nil {
				err = reason
			}
			return err
		}
		if err != nil {
			return c.fail(err)
		}
	}
}

// take reads bytes that are already available, without waiting. The caller holds the lock
// conn.reading.
func (s *Stream) take(b []byte) (n int) {
	c := s.conn
	c.socket.eager = true
	defer func() { c.socket.eager = false }()
	for c.left > 0 && n < len(b) {
		m, err := c.in.Read(b[n:min(len(b), n+c.left)])
		n += m
		c.left -= m
		if err != nil {
			break // an error that ends the connection is returned again later
		}
	}
	return n
}

// readError returns the reason why the stream cannot be read, or nil if it can.
func (s *Stream) readError() error {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if s.readErr == nil {
		return context.Cause(s.conn.ctx)
	}
	return s.readErr
}

func (s *Stream) Write(b []byte) (n int, err error) {
	c := s.conn
	c.writing.Lock()
	defer c.writing.Unlock()
	for n < len(b) {
		if err := s.sendError(); err != nil {
			return n, err
		}
		chunk := b[n:min(len(b), n+wire.MaxData)]
		if err := c.writeData(chunk); err != nil {
			return n, c.fail(err)
		}
		n += len(chunk)
	}
	return n, nil
}

func (s *Stream) sendError() error {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if s.sendErr == nil {
		return context.Cause(s.conn.ctx)
	}
	if errors.Is(s.sendErr, quic.ErrStreamClosed) {
		return fmt.Errorf("write on closed stream %d", s.id)
	}
	return s.sendErr
}

// Close ends the sending direction after all written bytes.
func (s *Stream) Close() error {
	c := s.conn
	c.writing.Lock()
	if !s.stopSending(quic.ErrStreamClosed) {
		c.writing.Unlock()
		return nil
	}
	s.sendingEnd()
	_, err := c.tls.Write(wire.AppendFrame(nil, wire.End, 0))
	c.writing.Unlock()
	if err != nil {
		return c.fail(err)
	}
	return nil
}

// CancelWrite resets the sending direction, and sends the code to the other side as the reason.
func (s *Stream) CancelWrite(code quic.StreamErrorCode) {
	s.abort(&quic.StreamError{StreamID: s.id, ErrorCode: code})
}

// abort resets the sending direction. It does nothing if that direction has ended.
func (s *Stream) abort(why *quic.StreamError) {
	if !s.stopSending(why) {
		return
	}
	s.conn.task(func() {
		s.conn.control(wire.AppendAbort(nil, wire.Abort, int64(s.id), wire.Code(why.ErrorCode)), s.sendingEnd)
	})
}

// stopSending makes Write fail with the given reason from now on. It returns false if the sending
// direction had already ended.
func (s *Stream) stopSending(why error) bool {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if s.sendErr != nil {
		return false
	}
	s.sendErr = why
	s.cancel(why)
	return true
}

// CancelRead tells the other side to stop sending, and makes Read fail.
func (s *Stream) CancelRead(code quic.StreamErrorCode) {
	c := s.conn
	c.mu.Lock()
	if s.readErr != nil {
		c.mu.Unlock()
		return
	}
	s.readErr = &quic.StreamError{StreamID: s.id, ErrorCode: code}
	s.deadline = time.Now().Add(settleTimeout)
	_ = c.tls.SetReadDeadline(past) // wakes up the reader
	c.mu.Unlock()
	c.task(func() { c.control(wire.AppendAbort(nil, wire.Stop, int64(s.id), wire.Code(code)), func() {}) })
	s.unread()
}

// receivedEnd records that the other side sends no more data, for the given reason. It returns an
// error if the other side had already ended the stream.
func (s *Stream) receivedEnd(why error) error {
	c := s.conn
	c.mu.Lock()
	if s.received {
		c.mu.Unlock()
		return fmt.Errorf("frame: a second end of stream %d", s.id)
	}
	s.received = true
	first := s.readErr == nil
	if first {
		s.readErr = why
	}
	c.mu.Unlock()
	if first {
		s.unread()
	}
	return nil
}

// sendingEnd records that this side sends no more data. It is called before the frame with this
// information is written, because the other side may answer the frame with its next stream. The
// caller holds the lock conn.writing.
func (s *Stream) sendingEnd() {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	s.sent = true
	if (s.settling || c.leave) && s.over() && c.ctx.Err() == nil {
		_ = c.tls.SetReadDeadline(past) // wakes up the goroutine in settle
	}
}

// unread is called when the stream is no longer read. It makes a goroutine read the connection
// until the stream is over. At the end that accepts streams, AcceptStream reads the connection
// instead.
func (s *Stream) unread() {
	c := s.conn
	close(s.done)
	if c.idle == nil {
		return
	}
	c.mu.Lock()
	over := s.over()
	s.settling = !over
	c.mu.Unlock()
	if over {
		c.idle()
		return
	}
	c.task(func() {
		c.reading <- struct{}{}
		var err error
		for over := false; !over && err == nil; {
			over, err = c.settle(s)
		}
		c.unlock()
		if err == nil {
			c.idle()
		}
	})
}

// SetDeadline sets the deadlines of both reading and writing.
func (s *Stream) SetDeadline(t time.Time) error {
	if err := s.SetReadDeadline(t); err != nil {
		return err
	}
	return s.SetWriteDeadline(t)
}

// SetReadDeadline sets the deadline of Read and Peek. After a missed deadline, the stream can still
// be read.
func (s *Stream) SetReadDeadline(t time.Time) error {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if s.readErr != nil || s.conn.ctx.Err() != nil {
		return nil
	}
	return s.conn.tls.SetReadDeadline(t)
}

// SetWriteDeadline sets the deadline of Write. A Write that misses it ends the whole connection,
// because TLS cannot continue afterwards.
func (s *Stream) SetWriteDeadline(t time.Time) error {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if s.sendErr != nil || s.conn.ctx.Err() != nil {
		return nil
	}
	return s.conn.tls.SetWriteDeadline(t)
}
