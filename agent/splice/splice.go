// Package splice joins a TCP connection and a QUIC stream so that each end sees
// what the other end's TCP peer does: bytes, end of data in one direction, reset.
package splice

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/quic-go/quic-go"

	"florete/agent/wire"
)

// Pair is the two ends to join and who is told.
type Pair struct {
	TCP    *net.TCPConn
	Stream *quic.Stream

	// Early are bytes already taken off TCP that go first.
	Early []byte

	// Ready, when set, is called before the first byte is taken off the stream,
	// while bytes from TCP already flow. Its error ends both ends with a reset.
	Ready func() error

	// FromTCP and ToTCP, when set, count bytes as they pass.
	FromTCP, ToTCP *atomic.Int64
}

// Run carries both directions until both have ended or either end was reset. When
// ctx ends it resets both. Both ends are closed when it returns. The error is
// Ready's.
func Run(ctx context.Context, p Pair) error {
	s := &session{Pair: p}
	defer p.TCP.Close()
	stopped := context.AfterFunc(ctx, func() { s.abort(wire.Stopping) })
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

	var ready error
	var both sync.WaitGroup
	both.Go(s.fromTCP)
	both.Go(func() {
		if p.Ready != nil {
			if ready = p.Ready(); ready != nil {
				s.abort(wire.Reset)
				return
			}
		}
		s.toTCP()
	})
	both.Wait()
	return ready
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
		s.TCP.SetLinger(0)
		s.TCP.Close()
	})
}

func (s *session) fromTCP() {
	if err := s.carryFromTCP(); err != nil {
		s.abort(wire.Reset)
	}
}

func (s *session) carryFromTCP() error {
	if len(s.Early) > 0 {
		if _, err := s.Stream.Write(s.Early); err != nil {
			return err
		}
		count(s.FromTCP, len(s.Early))
	}
	in, err := newSocket(s.TCP)
	if err != nil {
		return err
	}
	for {
		b, n, err := in.read()
		if err == nil && n > 0 {
			_, err = s.Stream.Write(b[:n])
			count(s.FromTCP, n)
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

func (s *session) toTCP() {
	if err := s.carryToTCP(); err != nil {
		s.abort(wire.Reset)
	}
}

func (s *session) carryToTCP() error {
	var one [1]byte
	for {
		// An idle stream holds no buffer.
		if _, err := s.Stream.Peek(one[:]); err != nil {
			if errors.Is(err, io.EOF) {
				return s.TCP.CloseWrite()
			}
			return err
		}
		b := buffers.Get()
		n, err := s.Stream.Read(b)
		if n > 0 {
			n, werr := s.TCP.Write(b[:n])
			count(s.ToTCP, n)
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
