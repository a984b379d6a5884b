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

// Stream is a wire.Stream.
type Stream struct {
	conn   *Conn
	id     quic.StreamID
	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{} // closed once nobody reads it any more

	// Under conn.mu:
	readErr  error     // why nothing more is read; nil while something may be
	sendErr  error     // why nothing more is sent
	received bool      // the other side sends no more of it
	sent     bool      // this side has written that it does not
	settling bool      // the connection is read until the stream is over
	deadline time.Time // for the other side to agree, after a reset
}

// TLS is the state of the stream's connection.
func (s *Stream) TLS() tls.ConnectionState { return s.conn.tls.ConnectionState() }

func (s *Stream) StreamID() quic.StreamID  { return s.id }
func (s *Stream) Context() context.Context { return s.ctx }

// over reports whether both sides know that the stream has ended. The caller holds conn.mu.
func (s *Stream) over() bool { return s.received && s.sent && s.readErr != nil }

// awaited reports whether the other side takes too long to end the stream.
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

// lock takes conn.reading, unless nobody reads the stream any more: somebody else may have
// it until the next one.
func (s *Stream) lock() error {
	select {
	case s.conn.reading <- struct{}{}: // alone, it costs less than beside another case
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

// Peek shows the next byte.
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

// await waits until a byte is there. The caller holds reading.
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

// take takes what is there already. The caller holds reading.
func (s *Stream) take(b []byte) (n int) {
	c := s.conn
	c.socket.eager = true
	defer func() { c.socket.eager = false }()
	for c.left > 0 && n < len(b) {
		m, err := c.in.Read(b[n:min(len(b), n+c.left)])
		n += m
		c.left -= m
		if err != nil {
			break // what ends the connection comes again
		}
	}
	return n
}

// readError is why nothing can be read.
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

// Close ends what is sent, behind it.
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

// CancelWrite resets what is sent.
func (s *Stream) CancelWrite(code quic.StreamErrorCode) {
	s.abort(&quic.StreamError{StreamID: s.id, ErrorCode: code})
}

// abort ends what is sent, unless it has ended.
func (s *Stream) abort(why *quic.StreamError) {
	if !s.stopSending(why) {
		return
	}
	s.conn.task(func() {
		s.conn.control(wire.AppendAbort(nil, wire.Abort, int64(s.id), wire.Code(why.ErrorCode)), s.sendingEnd)
	})
}

// stopSending has nothing more be sent.
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

// CancelRead has the other side send no more.
func (s *Stream) CancelRead(code quic.StreamErrorCode) {
	c := s.conn
	c.mu.Lock()
	if s.readErr != nil {
		c.mu.Unlock()
		return
	}
	s.readErr = &quic.StreamError{StreamID: s.id, ErrorCode: code}
	s.deadline = time.Now().Add(settleTimeout)
	_ = c.tls.SetReadDeadline(past) // wakes up who reads
	c.mu.Unlock()
	c.task(func() { c.control(wire.AppendAbort(nil, wire.Stop, int64(s.id), wire.Code(code)), func() {}) })
	s.unread()
}

// receivedEnd notes that the other side sends no more.
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

// sendingEnd notes that the other side will know that this one sends no more. The caller
// holds conn.writing and writes that next: its answer may be the next stream.
func (s *Stream) sendingEnd() {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	s.sent = true
	if (s.settling || c.leave) && s.over() && c.ctx.Err() == nil {
		_ = c.tls.SetReadDeadline(past) // wakes up who settles
	}
}

// unread has the connection be read on, now that nobody reads the stream. The end that
// accepts streams does so while it waits for the next.
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

// SetDeadline is that of reading and writing.
func (s *Stream) SetDeadline(t time.Time) error {
	if err := s.SetReadDeadline(t); err != nil {
		return err
	}
	return s.SetWriteDeadline(t)
}

// SetReadDeadline interrupts Read and Peek; they may be called again.
func (s *Stream) SetReadDeadline(t time.Time) error {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if s.readErr != nil || s.conn.ctx.Err() != nil {
		return nil
	}
	return s.conn.tls.SetReadDeadline(t)
}

// SetWriteDeadline ends the connection when it interrupts a Write: TLS cannot go on.
func (s *Stream) SetWriteDeadline(t time.Time) error {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if s.sendErr != nil || s.conn.ctx.Err() != nil {
		return nil
	}
	return s.conn.tls.SetWriteDeadline(t)
}
