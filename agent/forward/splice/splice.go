// Package splice joins a local connection and a stream, so that each local peer sees the actions of
// the other: bytes, the end of data in one direction, and a reset.
package splice

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/acl"
	"github.com/florete/florete/agent/forward/usage"
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
	Stream wire.Stream

	// FromLocal and ToLocal, when set, count bytes as they pass; Read counts those that
	// were taken off the stream.
	FromLocal, ToLocal, Read *atomic.Int64

	// Limits, when set, are what the caller may carry.
	Limits *acl.Share

	// Closing, when set, is called before Local is closed, perhaps twice.
	Closing func()
}

// Start carries both directions, and calls ended: when both have ended, with nil, or when
// either end was reset, with by what: ErrLocal, or the stream's error. When ctx ends it resets
// both, and the error is its cause. Both ends are closed by then.
//
// No goroutine waits for that: one that does has a stack as large as what it took to connect.
func Start(ctx context.Context, p Pair, ended func(error)) {
	s := &session{Pair: p, aborted: make(chan struct{}), ended: ended}
	s.directions.Store(2)
	boundUnsent(p.Local)
	var err error
	if s.local, err = lot.Add(p.Local, s.fromLocal, s.interrupt()); err != nil {
		s.abort(wire.Reset, err)
		s.end()
		return
	}
	s.in = usage.NewReader(s.local.Raw())
	s.stopped = context.AfterFunc(ctx, func() { s.abort(wire.Reset, context.Cause(ctx)) })
	// STOP_SENDING and the end of the connection are seen at once here, and else
	// only by the next write.
	sending := p.Stream.Context()
	s.cancelled = context.AfterFunc(sending, func() {
		if cause := context.Cause(sending); cause != quic.ErrStreamClosed {
			s.abort(wire.Reset, cause)
		}
	})
	go s.fromLocal()
	go s.toLocal()
}

// ErrLocal is why a pair has ended whose local end was reset.
var ErrLocal = errors.New("the local end was reset")

// lot has local ends that wait for their processes.
var lot Lot

type session struct {
	Pair
	local              *Socket // nil when it could not be added
	in                 *usage.Reader
	stopped, cancelled func() bool
	directions         atomic.Int32 // that have not ended
	once               sync.Once
	aborted            chan struct{}
	why                error
	one                [1]byte // peeked at
	ended              func(error)
}

// over is called when a direction has ended.
func (s *session) over() {
	if s.directions.Add(-1) > 0 {
		return
	}
	s.once.Do(func() {})
	s.cancelled()
	s.stopped()
	s.local.Remove()
	s.end()
}

func (s *session) end() {
	s.closing()
	s.Local.Close()
	s.ended(s.why)
}

func (s *session) closing() {
	if s.Closing != nil {
		s.Closing()
	}
}

// abort resets both ends, so that neither takes a cut stream for a whole one.
func (s *session) abort(code wire.Code, why error) {
	s.once.Do(func() {
		s.why = why
		close(s.aborted)
		s.Stream.CancelWrite(quic.StreamErrorCode(code))
		s.Stream.CancelRead(quic.StreamErrorCode(code))
		s.closing()
		Reset(s.Local)
		if s.local != nil {
			s.local.Wake()
		}
	})
}

// whose is whose an error is.
func whose(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return ErrLocal
	}
	return err
}

// fromLocal carries until the local end waits for long; then it is called again.
func (s *session) fromLocal() {
	parked, err := s.carryFromLocal()
	if parked {
		return
	}
	if err != nil {
		s.abort(wire.Reset, whose(err))
	}
	s.over()
}

func (s *session) carryFromLocal() (parked bool, err error) {
	for {
		b, n, err := s.in.Read(s.Limits.Most())
		s.local.Progress()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err := s.local.Park()
			return err == nil, err
		}
		if err == nil && n > 0 {
			_, err = s.Stream.Write(b[:n])
			s.together(n)
			count(s.FromLocal, n)
		}
		usage.PutBuffer(b)
		if err != nil {
			return false, err
		}
		if n == 0 {
			s.Stream.Close()
			s.local.Remove()
			return false, awaitReset(s.Local, s.local.Raw())
		}
		s.Limits.Wait(s.aborted, n)
	}
}

// toLocal carries until the stream waits for long; then it is called again.
func (s *session) toLocal() {
	parked, err := s.carryToLocal()
	if parked {
		go s.await()
		return
	}
	if err != nil {
		s.abort(wire.Reset, whose(err))
	}
	s.over()
}

// interrupt has a stream over QUIC that waits be left to await. Over TCP whoever waits for the
// stream reads its connection.
func (s *session) interrupt() func() {
	if st, ok := s.Stream.(*quic.Stream); ok {
		return func() { _ = st.SetReadDeadline(past) }
	}
	return nil
}

var past = time.Unix(1, 0)

// await waits for the stream, on a stack that has not grown: quic-go calls nobody back.
func (s *session) await() {
	_, _ = s.Stream.Peek(s.one[:])
	go s.toLocal()
}

func (s *session) carryToLocal() (parked bool, err error) {
	for {
		// An idle stream holds no buffer.
		if _, err := s.Stream.Peek(s.one[:]); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				err := s.Stream.SetReadDeadline(time.Time{})
				return err == nil, err
			}
			if !errors.Is(err, io.EOF) {
				return false, err
			}
			// Only a Read that meets the end gives the stream back (quic-go).
			_, _ = s.Stream.Read(s.one[:])
			return false, s.Local.CloseWrite()
		}
		s.local.Wrote()
		b := usage.GetBuffer()
		n, err := s.Stream.Read(b[:min(len(b), s.Limits.Most())])
		if errors.Is(err, os.ErrDeadlineExceeded) { // it was about to wait, and did not
			err = s.Stream.SetReadDeadline(time.Time{})
		}
		count(s.Read, n)
		if n > 0 {
			n, werr := s.Local.Write(b[:n])
			count(s.ToLocal, n)
			if werr != nil {
				err = werr
			}
		}
		usage.PutBuffer(b)
		if err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		s.Limits.Wait(s.aborted, n)
	}
}

func count(c *atomic.Int64, n int) {
	if c != nil {
		c.Add(int64(n))
	}
}
