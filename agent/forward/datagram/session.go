package datagram

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/acl"
	"github.com/florete/florete/agent/forward/wire"
)

// Idle is how long a session lives without a datagram in either direction, see RFC 4787
// REQ-5.
const Idle = 2 * time.Minute

// Local is the local end of a session, and who counts. Every field but Limits must be set.
type Local struct {
	Deliver func(payload []byte) // sends to it; must neither wait nor keep the payload
	Idle    time.Duration
	Held    *Held      // with the other sessions of the same peer or user
	Limits  *acl.Share // of both directions

	FromLocal, ToLocal *atomic.Int64 // bytes
	// Dropped are datagrams that came from the local end and found a queue full, and those,
	// in both directions, that exceeded a limit.
	Dropped *atomic.Int64
}

// Session joins a local end and a stream with its datagrams. It takes datagrams from
// the start, and sends them once it is attached.
type Session struct {
	Local
	ctx   context.Context
	end   context.CancelCauseFunc
	used  atomic.Int64 // since epoch
	held  atomic.Int64 // cost of what waits to be sent
	queue chan packet  // over the stream

	// Attach sets these.
	stream wire.Stream
	mux    *Mux

	answered atomic.Bool // sends frames
}

// New makes a session that ends with ctx.
func New(ctx context.Context, l Local) *Session {
	s := &Session{Local: l, queue: make(chan packet, maxAside)}
	s.ctx, s.end = context.WithCancelCause(ctx)
	context.AfterFunc(s.ctx, s.dropAside)
	s.touch()
	return s
}

// ended is why a session ended here.
type ended wire.Code

func (e ended) Error() string { return wire.Code(e).String() }

// End ends the session, and sends the peer the code.
func (s *Session) End(code wire.Code) { s.end(ended(code)) }

// Code is what the session ended with here.
func (s *Session) Code() wire.Code {
	var e ended
	if errors.As(context.Cause(s.ctx), &e) {
		return wire.Code(e)
	}
	return wire.Stopping
}

// Stop ends the session because the forwarder stops.
func (s *Session) Stop() { s.End(wire.Stopping) }

// Context ends with the session.
func (s *Session) Context() context.Context { return s.ctx }

// Attach gives the session its stream. From here on it delivers what the peer sends in
// frames. Run must follow.
func (s *Session) Attach(m *Mux, st wire.Stream) {
	s.mux, s.stream = m, st
	m.join(s)
}

// Run carries until the session ends at either side, or is idle. Answer waits for the
// peer's answer, while what is sent goes over the stream. The error is its, or
// why the peer ended the session; nil when nothing is wrong.
func (s *Session) Run(answer func() error) error {
	defer s.mux.leave(s.stream.StreamID())
	defer s.End(wire.Done)
	context.AfterFunc(s.ctx, s.reset)
	var failed error
	var once sync.Once
	fail := func(err error) {
		once.Do(func() {
			if s.ctx.Err() == nil && !inOrder(err) {
				failed = err
			}
			s.End(wire.Done)
		})
	}
	var both sync.WaitGroup
	both.Go(func() {
		if err := answer(); err != nil {
			fail(err)
			return
		}
		s.answered.Store(true)
		fail(s.fromStream())
	})
	both.Go(func() { fail(s.toStream()) })
	both.Wait()
	return failed
}

// inOrder reports whether the end of a stream is that of a session that nobody uses.
func inOrder(err error) bool {
	var st *quic.StreamError
	return err == nil || errors.Is(err, io.EOF) || errors.As(err, &st) && wire.Code(st.ErrorCode) == wire.Done
}

func (s *Session) reset() {
	code := s.Code()
	s.stream.CancelRead(quic.StreamErrorCode(code))
	s.stream.CancelWrite(quic.StreamErrorCode(code))
}

// Send takes a datagram from the local end.
func (s *Session) Send(payload []byte) {
	s.touch()
	if !s.Limits.Allow(len(payload)) {
		s.Dropped.Add(1)
		return
	}
	p := newPacket(payload)
	switch held, all := s.held.Add(p.cost()), s.Held.cost.Add(p.cost()); {
	case len(payload) > wire.MaxPayload, held > maxHeld, all > maxAll:
		s.drop(p)
	case s.answered.Load():
		s.mux.frame(s, p)
	default:
		s.aside(p)
	}
}

// sent and drop are the two ends of a packet that was held.
func (s *Session) sent(p packet) {
	s.release(p.cost())
	s.FromLocal.Add(p.size())
}

func (s *Session) drop(p packet) {
	s.release(p.cost())
	s.Dropped.Add(1)
}

func (s *Session) release(cost int64) {
	s.held.Add(-cost)
	s.Held.cost.Add(-cost)
}

// aside sends a packet over the stream.
func (s *Session) aside(p packet) {
	select {
	case s.queue <- p:
		if s.ctx.Err() != nil {
			s.dropAside()
		}
	default:
		s.drop(p)
	}
}

// dropAside gives back what an ended session held.
func (s *Session) dropAside() {
	for {
		select {
		case p := <-s.queue:
			s.drop(p)
		default:
			return
		}
	}
}

// toStream sends what goes over the stream, until the session is idle.
func (s *Session) toStream() error {
	timer := time.NewTimer(s.Idle)
	defer timer.Stop()
	for {
		select {
		case p := <-s.queue:
			if _, err := s.stream.Write(p.framed()); err != nil {
				return err
			}
			s.sent(p)
		case <-timer.C:
			left := s.Idle - (time.Since(epoch) - s.Used())
			if left <= 0 {
				return nil
			}
			timer.Reset(left)
		case <-s.ctx.Done():
			return nil
		}
	}
}

// fromStream delivers what comes over the stream.
func (s *Session) fromStream() error {
	for {
		n, err := wire.ReadLength(s.stream)
		if err != nil {
			return err
		}
		b := buffers.get()
		if _, err = io.ReadFull(s.stream, b[:n]); err == nil {
			s.mux.Read.Add(int64(n))
			s.fromPeer(b[:n])
		}
		buffers.put(b)
		if err != nil {
			return err
		}
	}
}

// fromPeer delivers a datagram.
func (s *Session) fromPeer(payload []byte) {
	s.touch()
	if !s.Limits.Allow(len(payload)) {
		s.Dropped.Add(1)
		return
	}
	s.Deliver(payload)
	s.ToLocal.Add(int64(len(payload)))
}

// epoch makes times numbers that no clock turns back.
var epoch = time.Now()

func (s *Session) touch() { s.used.Store(int64(time.Since(epoch))) }

// Used is when a datagram went last, after some beginning.
func (s *Session) Used() time.Duration { return time.Duration(s.used.Load()) }
