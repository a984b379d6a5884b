// Package splice joins a local connection and a QUIC stream so that each end sees
// what the other end's local peer does: bytes, end of data in one direction, reset.
package splice

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/wire"
)

// Conn is a connection whose directions end on their own: TCP, or a Unix socket,
// which cannot be reset: its peer takes what is cut for the end of data.
type Conn interface {
	net.Conn
	syscall.Conn
	CloseWrite() error
}

// Reset closes c so that its peer sees a reset, where c can.
func Reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	c.Close()
}

// Pair is the two ends to join, and the counters.
type Pair struct {
	Local  Conn
	Stream *quic.Stream

	// FromLocal and ToLocal, when set, count bytes as they pass; Read counts those that
	// were taken off the stream.
	FromLocal, ToLocal, Read *atomic.Int64
}

// Run carries both directions until both have ended or either end was reset. When
// ctx ends it resets both. Both ends are closed when it returns.
func Run(ctx context.Context, p Pair) {
	s := &session{Pair: p}
	defer p.Local.Close()
	boundUnsent(p.Local)
	stopped := context.AfterFunc(ctx, func() { s.abort(wire.Reset) })
	defer stopped()
	// STOP_SENDING and the end of the connection are seen at once here, and else
	// only by the next write.
	sending := p.Stream.Context()
	cancelled := context.AfterFunc(sending, func() {
		if context.Cause(sending) != quic.ErrStreamClosed {
			s.abort(wire.Reset)
		}
	})
	defer cancelled()

	var both sync.WaitGroup
	both.Go(s.fromLocal)
	both.Go(s.toLocal)
	both.Wait()
}

type session struct {
	Pair
	once sync.Once
}

// abort resets both ends, so that neither takes a cut stream for a whole one.
func (s *session) abort(code wire.Code) {
	s.once.Do(func() {
		s.Stream.CancelWrite(quic.StreamErrorCode(code))
		s.Stream.CancelRead(quic.StreamErrorCode(code))
		Reset(s.Local)
	})
}

func (s *session) fromLocal() {
	if err := s.carryFromLocal(); err != nil {
		s.abort(wire.Reset)
	}
}

func (s *session) carryFromLocal() error {
	in, err := newSocket(s.Local)
	if err != nil {
		return err
	}
	for {
		b, n, err := in.read()
		if err == nil && n > 0 {
			_, err = s.Stream.Write(b[:n])
			count(s.FromLocal, n)
		}
		buffers.Put(b)
		if err != nil {
			return err
		}
		if n == 0 {
			s.Stream.Close()
			return in.awaitReset()
		}
	}
}

func (s *session) toLocal() {
	if err := s.carryToLocal(); err != nil {
		s.abort(wire.Reset)
	}
}

func (s *session) carryToLocal() error {
	var one [1]byte
	for {
		// An idle stream holds no buffer.
		if _, err := s.Stream.Peek(one[:]); err != nil {
			if !errors.Is(err, io.EOF) {
				return err
			}
			// Only a Read that meets the end gives the stream back (quic-go).
			_, _ = s.Stream.Read(one[:])
			return s.Local.CloseWrite()
		}
		b := buffers.Get()
		n, err := s.Stream.Read(b)
		count(s.Read, n)
		if n > 0 {
			n, werr := s.Local.Write(b[:n])
			count(s.ToLocal, n)
			if werr != nil {
				err = werr
			}
		}
		buffers.Put(b)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
}

func count(c *atomic.Int64, n int) {
	if c != nil {
		c.Add(int64(n))
	}
}
