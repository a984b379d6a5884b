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

// Idle is the time after which a session without datagrams in either direction ends, see RFC 4787,
// REQ-5.
const Idle = 2 * time.Minute

// Local is the local end of a session, with its counters. All fields except Limits must be set.
type Local struct {
	Deliver func(payload []byte) // sends to the local end; must neither block nor keep the payload
	Idle    time.Duration
	Held    *Held      // shared with the other sessions of the same peer or user
	Limits  *acl.Share // for both directions

	FromLocal, ToLocal *atomic.Int64 // bytes
	// Dropped counts datagrams from the local end that found a queue full, and datagrams in both
	// directions that exceeded a limit.
	Dropped *atomic.Int64
}

// Session joins a local end and a stream with its datagrams. It accepts datagrams from the start
// and sends them once a stream is attached.
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

	answered atomic.Bool // the peer has answered, so frames may be sent
}

// New returns a session that ends with ctx.
func New(ctx context.Context, l Local) *Session {
	s := &Session{Local: l, queue: make(chan packet, maxAside)}
	s.ctx, s.end = context.WithCancelCause(ctx)
	context.AfterFunc(s.ctx, s.dropAside)
	s.touch()
	return s
}

// ended is the reason of an end on this side.
type ended wire.Code

func (e ended) Error() string { return wire.Code(e).String() }

// End ends the session and sends code to the peer.
func (s *Session) End(code wire.Code) { s.end(ended(code)) }

// Code returns the code with which the session ended on this side.
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

// Attach sets the stream of the session. From then on the session delivers frames from the peer.
// Run must be called afterwards.
func (s *Session) Attach(m *Mux, st wire.Stream) {
	s.mux, s.stream = m, st
	m.join(s)
}

// Run carries datagrams until either side ends the session or it is idle. answer waits for the
// peer's answer; until then datagrams go over the stream. Run returns the error of answer or the
// reason with which the peer ended the session, and nil for a normal end.
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

// inOrder reports whether a stream ended normally.
func inOrder(err error) bool {
	var st *quic.StreamError
	return err == nil || errors.Is(err, io.EOF) || errors.As(err, &st) && wire.Code(st.ErrorCode) == wire.Done
}

func (s *Session) reset() {
	code := s.Code()
	s.stream.CancelRead(quic.StreamErrorCode(code))
	s.stream.CancelWrite(quic.StreamErrorCode(code))
}

// Send sends a datagram from the local end.
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

// sent and drop release a held packet.
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

// aside queues a packet for the stream.
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

// dropAside releases the packets that an ended session held.
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

// fromStream delivers datagrams from the stream.
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

// fromPeer delivers a datagram from the peer.
func (s *Session) fromPeer(payload []byte) {
	s.touch()
	if !s.Limits.Allow(len(payload)) {
		s.Dropped.Add(1)
		return
	}
	s.Deliver(payload)
	s.ToLocal.Add(int64(len(payload)))
}

// epoch is the reference for times, which are monotonic.
var epoch = time.Now()

func (s *Session) touch() { s.used.Store(int64(time.Since(epoch))) }

// Used returns the time of the last datagram since an arbitrary epoch.
func (s *Session) Used() time.Duration { return time.Duration(s.used.Load()) }
