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

// Idle is the time after which a session ends if no datagram passes in either direction. RFC 4787,
// REQ-5, requires at least two minutes.
const Idle = 2 * time.Minute

// Local describes the local end of a UDP session, with its limits and counters. All fields except
// Limits must be set.
type Local struct {
	Deliver func(payload []byte) // sends to the local end; must not block or keep the payload
	Idle    time.Duration
	Held    *Held      // shared with the other sessions of the same peer or user
	Limits  *acl.Share // limits of both directions

	FromLocal, ToLocal *atomic.Int64 // bytes
	// Dropped counts dropped datagrams: those from the local end that found a queue full, and those
	// in both directions that exceeded a limit.
	Dropped *atomic.Int64
}

// Session carries the datagrams of one UDP session between its local end and a stream to another
// forwarder. A session accepts datagrams as soon as it exists, and sends them once Attach has set
// the stream.
type Session struct {
	Local
	ctx   context.Context
	end   context.CancelCauseFunc
	used  atomic.Int64 // time of the last datagram since epoch
	held  atomic.Int64 // cost of packets that wait to be sent
	queue chan packet  // packets to send over the stream

	// The following fields are set by Attach.
	stream wire.Stream
	mux    *Mux

	answered atomic.Bool // the peer has answered, so that frames may be sent
}

// New returns a session without a stream. The session ends when ctx ends, or when End or Stop is
// called.
func New(ctx context.Context, l Local) *Session {
	s := &Session{Local: l, queue: make(chan packet, maxAside)}
	s.ctx, s.end = context.WithCancelCause(ctx)
	context.AfterFunc(s.ctx, s.dropAside)
	s.touch()
	return s
}

// ended is the error with which this side ended a session.
type ended wire.Code

func (e ended) Error() string { return wire.Code(e).String() }

// End ends the session and tells the peer the reason.
func (s *Session) End(code wire.Code) { s.end(ended(code)) }

// Code returns the code with which this side ended the session.
func (s *Session) Code() wire.Code {
	var e ended
	if errors.As(context.Cause(s.ctx), &e) {
		return wire.Code(e)
	}
	return wire.Stopping
}

// Stop ends the session because the forwarder is stopping.
func (s *Session) Stop() { s.End(wire.Stopping) }

// Context returns a context that ends with the session.
func (s *Session) Context() context.Context { return s.ctx }

// Attach gives the session the stream to the other forwarder, and the Mux of the connection that
// carries the stream. From then on, the session delivers datagrams from the other forwarder. The
// caller must call Run next.
func (s *Session) Attach(m *Mux, st wire.Stream) {
	s.mux, s.stream = m, st
	m.join(s)
}

// Run carries datagrams until one side ends the session or the session is idle. It calls answer to
// wait for the peer's answer to the stream. Until answer returns nil, datagrams are sent on the
// stream and not in frames. Run returns nil if the session ends normally. Otherwise it returns the
// error of answer, or the reason that the peer gave.
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

// inOrder reports whether an error means that a stream ended normally.
func inOrder(err error) bool {
	var st *quic.StreamError
	return err == nil || errors.Is(err, io.EOF) || errors.As(err, &st) && wire.Code(st.ErrorCode) == wire.Done
}

func (s *Session) reset() {
	code := s.Code()
	s.stream.CancelRead(quic.StreamErrorCode(code))
	s.stream.CancelWrite(quic.StreamErrorCode(code))
}

// Send queues a datagram from the local end to the peer. It never blocks. It drops and counts the
// datagram if it is too large, if the queues are full, or if a limit is exceeded.
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

// The functions sent and drop release a packet that the session held in a queue.
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

// aside queues a packet to be sent on the stream instead of in a frame.
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

// dropAside drops the packets for the stream after the session has ended.
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

// toStream sends queued packets over the stream until the session is idle.
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

// fromStream delivers the datagrams that arrive on the stream to the local end.
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

// fromPeer delivers a datagram from the peer to the local end.
func (s *Session) fromPeer(payload []byte) {
	s.touch()
	if !s.Limits.Allow(len(payload)) {
		s.Dropped.Add(1)
		return
	}
	s.Deliver(payload)
	s.ToLocal.Add(int64(len(payload)))
}

// epoch is the time from which other times are measured, so that they are monotonic.
var epoch = time.Now()

func (s *Session) touch() { s.used.Store(int64(time.Since(epoch))) }

// Used returns the time of the session's last datagram, as the duration since an arbitrary start
// that all sessions share. It is only useful for comparing sessions.
func (s *Session) Used() time.Duration { return time.Duration(s.used.Load()) }
