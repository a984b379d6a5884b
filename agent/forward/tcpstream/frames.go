package tcpstream

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/wire"
)

// record is what one TLS record holds (RFC 8446 section 5.1).
const record = 16 << 10

var records = sync.Pool{New: func() any { return new([record]byte) }}

// writeData writes a frame with bytes of the stream. The caller holds writing.
func (c *Conn) writeData(b []byte) error {
	if len(b) <= record-wire.FrameHeader {
		buf := records.Get().(*[record]byte)
		defer records.Put(buf)
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

// control writes a whole frame, after calling writing, or resets the connection when that
// takes too long.
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

// step reads and handles one frame; of Data, its header. After an error other than a
// deadline's the connection must end. The caller holds reading.
func (c *Conn) step() error {
	if err := c.fill(wire.FrameHeader); err != nil {
		return err
	}
	t, length, err := wire.ParseFrame(c.head[:])
	if err != nil {
		return err
	}
	if t == wire.Data {
		c.have = 0
		if length > 0 {
			c.left = length
			return c.expected()
		}
		return nil
	}
	if err := c.fill(wire.FrameHeader + length); err != nil {
		return err
	}
	c.have = 0
	return c.handle(t, c.head[wire.FrameHeader:wire.FrameHeader+length])
}

// fill reads until there are n bytes of the head. What a deadline interrupts goes on.
func (c *Conn) fill(n int) error {
	for c.have < n {
		m, err := c.tls.Read(c.head[c.have:n])
		c.have += m
		if err != nil && c.have < n {
			return err
		}
	}
	return nil
}

// expected reports data that nothing announced.
func (c *Conn) expected() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stream
	if s == nil || s.over() {
		if c.idle != nil {
			return fmt.Errorf("frame: data without a stream")
		}
		return nil // the next one
	}
	if s.received {
		return fmt.Errorf("frame: data behind the end of stream %d", s.id)
	}
	return nil
}

// handle does what a frame other than Data requests.
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
	if quic.StreamID(id) == s.id { // or of one that is over
		s.abort(reset)
	}
	return nil
}
