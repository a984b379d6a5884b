// Package splice joins a local connection and a stream to another forwarder, so that the programs
// at both ends communicate as over one connection. It forwards bytes, the end of data in one
// direction, and resets.
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

// Conn is a local connection whose two directions can end separately: a TCP connection or a Unix
// socket. A Unix socket cannot be reset. Its peer sees the end of data instead.
type Conn interface {
	net.Conn
	syscall.Conn
	CloseWrite() error
}

// Reset closes a connection so that its peer sees a reset. If the connection is not a TCP
// connection, the peer sees the end of data instead.
func Reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	c.Close()
}

// Pair contains the two ends between which Start forwards data: a connection to a local program,
// and a stream to another host. It also contains their limits and the counters for their traffic.
type Pair struct {
	Local  Conn
	Stream wire.Stream

	// FromLocal and ToLocal count the bytes forwarded in each direction. Read counts the bytes read
	// from the stream. Each of them may be nil.
	FromLocal, ToLocal, Read *atomic.Int64

	// Limits are the traffic limits of the caller. They may be nil.
	Limits *acl.Share

	// Closing is called before Local is closed, possibly twice. It may be nil.
	Closing func()
}

// Start begins to forward data in both directions between the two ends of a pair, and returns at
// once. When both directions have ended, it closes both ends and calls ended with one of these
// values:
//
//   - nil after a normal end.
//   - ErrLocal if the local end was reset.
//   - The error of the stream if the other end was reset.
//   - The cause of ctx if ctx ended. Both ends are then reset.
//
// Start keeps no goroutine that waits for the end, because its stack would stay as large as the
// stack that established the connection.
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
	// This notices STOP_SENDING and the end of the connection at once. Otherwise only the next
	// write would notice them.
	sending := p.Stream.Context()
	s.cancelled = context.AfterFunc(sending, func() {
		if cause := context.Cause(sending); cause != quic.ErrStreamClosed {
			s.abort(wire.Reset, cause)
		}
	})
	go s.fromLocal()
	go s.toLocal()
}

// ErrLocal is the error that Start reports if the local end was reset.
var ErrLocal = errors.New("the local end was reset")

// lot waits for the local ends that are idle.
var lot Lot

type session struct {
	Pair
	local              *Socket // nil if lot could not add it
	in                 *usage.Reader
	stopped, cancelled func() bool
	directions         atomic.Int32 // number of directions that have not ended
	once               sync.Once
	aborted            chan struct{}
	why                error
	one                [1]byte // buffer for Peek
	ended              func(error)
}

// over records that one direction has ended. After the second direction has ended, it releases the
// resources of the session.
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

// abort resets both ends, so that neither peer takes an incomplete stream for a complete one.
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

// whose returns ErrLocal if an error came from the local end. It returns an error of the stream
// unchanged.
func whose(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return ErrLocal
	}
	return err
}

// fromLocal forwards data from the local end to the stream. It returns when the local end has ended
// or was idle for a while. After an idle time, it is called again when data arrives.
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

// toLocal forwards data from the stream to the local end. It returns when the stream has ended or
// was idle for a while. After an idle time, it is called again when data arrives.
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

// interrupt returns a function that interrupts the read of an idle QUIC stream, so that await can
// wait for the stream instead. It returns nil for a stream over TCP, where the reader of the stream
// reads the connection.
func (s *session) interrupt() func() {
	if st, ok := s.Stream.(*quic.Stream); ok {
		return func() { _ = st.SetReadDeadline(past) }
	}
	return nil
}

var past = time.Unix(1, 0)

// await waits for data of an idle stream, in a goroutine with a small stack. quic-go has no
// callbacks that could replace the goroutine.
func (s *session) await() {
	_, _ = s.Stream.Peek(s.one[:])
	go s.toLocal()
}

func (s *session) carryToLocal() (parked bool, err error) {
	for {
		// Peek first, so that an idle stream holds no buffer.
		if _, err := s.Stream.Peek(s.one[:]); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				err := s.Stream.SetReadDeadline(time.Time{})
				return err == nil, err
			}
			if !errors.Is(err, io.EOF) {
				return false, err
			}
			// quic-go frees the stream only after a Read that returns the end.
			_, _ = s.Stream.Read(s.one[:])
			return false, s.Local.CloseWrite()
		}
		s.local.Wrote()
		b := usage.GetBuffer()
		n, err := s.Stream.Read(b[:min(len(b), s.Limits.Most())])
		if errors.Is(err, os.ErrDeadlineExceeded) { // interrupt was called just before this read
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
