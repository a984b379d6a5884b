package tcpstream

import (
	"crypto/tls"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/wire"
)

// record is the maximum payload of a TLS record in bytes (RFC 8446, section 5.1).
const record = 16 << 10

var sealing = sync.Pool{New: func() any { return new([record]byte) }}

// writeData writes a Data frame. The caller holds the lock writing.
func (c *Conn) writeData(b []byte) error {
	if len(b) <= record-wire.FrameHeader {
		buf := sealing.Get().(*[record]byte)
		defer sealing.Put(buf)
		_, err := c.tls.Write(append(wire.AppendFrame(buf[:0], wire.Data, len(b)), b...))
		return err
	}
	var head [wire.FrameHeader]byte
	c.socket.gather()
	_, err := c.tls.Write(wire.AppendFrame(head[:0], wire.Data, len(b)))
	if err == nil {
		_, err = c.tls.Write(b)
	}
	if flushed := c.socket.written(); err == nil {
		err = flushed
	}
	return err
}

// control writes a complete frame that is not a Data frame. It calls the function writing just
// before it writes. If the other side does not read the frame in time, control resets the
// connection.
func (c *Conn) control(frame []byte, writing func()) {
	timer := time.AfterFunc(settleTimeout, func() { _ = c.kill(fmt.Errorf("%s does not read", c.RemoteAddr())) })
	defer timer.Stop()
	c.writing.Lock()
	defer c.writing.Unlock()
	writing()
	if _, err := c.tls.Write(frame); err != nil {
		_ = c.fail(err)
	}
}

// step reads and handles one frame. It reads a Data frame only up to the end of the header. If step
// returns an error other than a timeout, the connection must end. The caller holds the lock
// reading.
func (c *Conn) step() error {
	head, err := c.in.Peek(wire.FrameHeader)
	if err != nil {
		return err
	}
	t, length, err := wire.ParseFrame(head)
	if err != nil {
		return err
	}
	if t == wire.Data {
		_, _ = c.in.Discard(wire.FrameHeader)
		if length > 0 {
			c.left = length
			return c.expected()
		}
		return nil
	}
	frame, err := c.in.Peek(wire.FrameHeader + length)
	if err != nil {
		return err
	}
	_, _ = c.in.Discard(len(frame))
	return c.handle(t, frame[wire.FrameHeader:])
}

// records reads the payload of TLS records. If an error comes together with bytes, Read returns the
// bytes first, and the error in the next call.
type records struct{ *tls.Conn }

func (r records) Read(b []byte) (int, error) {
	n, err := r.Conn.Read(b)
	if n > 0 {
		err = nil
	}
	return n, err
}

// expected returns an error if no stream may receive data now.
func (c *Conn) expected() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stream
	if s == nil || s.over() {
		if c.idle != nil {
			return fmt.Errorf("frame: data without a stream")
		}
		return nil // the data begins the next stream
	}
	if s.received {
		return fmt.Errorf("frame: data behind the end of stream %d", s.id)
	}
	return nil
}

// handle handles any frame except Data.
func (c *Conn) handle(t wire.FrameType, body []byte) error {
	c.mu.Lock()
	s := c.stream
	c.mu.Unlock()
	if t == wire.Close {
		code, reason, err := wire.ParseClose(body)
		if err != nil {
			return err
		}
		return &quic.ApplicationError{Remote: true, ErrorCode: quic.ApplicationErrorCode(code), ErrorMessage: reason}
	}
	if s == nil {
		return fmt.Errorf("frame: type %d without a stream", t)
	}
	if t == wire.End {
		return s.receivedEnd(io.EOF)
	}
	id, code, err := wire.ParseAbort(body)
	if err != nil {
		return err
	}
	reset := &quic.StreamError{StreamID: s.id, ErrorCode: quic.StreamErrorCode(code), Remote: true}
	if t == wire.Abort {
		if quic.StreamID(id) != s.id {
			return fmt.Errorf("frame: reset of stream %d, want %d", id, s.id)
		}
		return s.receivedEnd(reset)
	}
	if quic.StreamID(id) == s.id { // otherwise it is for a stream that is over
		s.abort(reset)
	}
	return nil
}
