package datagram

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/wire"
)

// Idle is how long a flow lives without a datagram in either direction, see RFC 4787
// REQ-5.
const Idle = 2 * time.Minute

// Local is the local end of a flow, and who counts. Every field must be set.
type Local struct {
	Deliver func(payload []byte) // sends to it; must neither wait nor keep the payload
	Idle    time.Duration
	Held    *Held // with the other flows of the same peer or user

	FromLocal, ToLocal *atomic.Int64 // bytes
	Dropped            *atomic.Int64 // datagrams that came from the local end and found a queue full
}

// Flow joins a local end and a stream with its datagrams. It takes datagrams from
// the start, and sends them once it is attached.
type Flow struct {
	Local
	ctx  context.Context
	end  context.CancelCauseFunc
	used atomic.Int64 // since epoch
	held atomic.Int64 // cost of what waits to be sent
	side chan packet  // over the stream

	// Attach sets these.
	stream *quic.Stream
	conn   *Conn

	answered atomic.Bool // sends frames
}

// New makes a flow that ends with ctx.
func New(ctx context.Context, l Local) *Flow {
	f := &Flow{Local: l, side: make(chan packet, maxAside)}
	f.ctx, f.end = context.WithCancelCause(ctx)
	context.AfterFunc(f.ctx, f.dropAside)
	f.touch()
	return f
}

// ended is why a flow ended here.
type ended wire.Code

func (e ended) Error() string { return wire.Code(e).String() }

// End ends the flow, and tells the peer the code.
func (f *Flow) End(code wire.Code) { f.end(ended(code)) }

// Code is what the flow ended with here.
func (f *Flow) Code() wire.Code {
	var e ended
	if errors.As(context.Cause(f.ctx), &e) {
		return wire.Code(e)
	}
	return wire.Stopping
}

// Stop ends the flow because the forwarder stops.
func (f *Flow) Stop() { f.End(wire.Stopping) }

// Context ends with the flow.
func (f *Flow) Context() context.Context { return f.ctx }

// Attach gives the flow its stream. From here on it delivers what the peer sends in
// frames. Run must follow.
func (f *Flow) Attach(c *Conn, st *quic.Stream) {
	f.conn, f.stream = c, st
	c.join(f)
}

// Run carries until the flow ends at either side, or is idle. Answer waits for the
// peer's answer, while what is sent goes over the stream. The error is its, or says
// why the peer ended the flow; nil when nothing is wrong.
func (f *Flow) Run(answer func() error) error {
	defer f.conn.leave(f.stream.StreamID())
	defer f.End(wire.Done)
	context.AfterFunc(f.ctx, f.reset)
	var failed error
	var once sync.Once
	fail := func(err error) {
		once.Do(func() {
			if f.ctx.Err() == nil && !inOrder(err) {
				failed = err
			}
			f.End(wire.Done)
		})
	}
	var both sync.WaitGroup
	both.Go(func() {
		if err := answer(); err != nil {
			fail(err)
			return
		}
		f.answered.Store(true)
		fail(f.fromStream())
	})
	both.Go(func() { fail(f.toStream()) })
	both.Wait()
	return failed
}

// inOrder tells whether the end of a stream is that of a flow that nobody uses.
func inOrder(err error) bool {
	var st *quic.StreamError
	return err == nil || errors.Is(err, io.EOF) || errors.As(err, &st) && wire.Code(st.ErrorCode) == wire.Done
}

func (f *Flow) reset() {
	code := f.Code()
	f.stream.CancelRead(quic.StreamErrorCode(code))
	f.stream.CancelWrite(quic.StreamErrorCode(code))
}

// Send takes a datagram from the local end.
func (f *Flow) Send(payload []byte) {
	f.touch()
	p := newPacket(payload)
	switch held, all := f.held.Add(p.cost()), f.Held.cost.Add(p.cost()); {
	case len(payload) > wire.MaxPayload, held > maxHeld, all > maxAll:
		f.drop(p)
	case f.answered.Load():
		f.conn.frame(f, p)
	default:
		f.aside(p)
	}
}

// sent and drop are the two ends of a packet that was held.
func (f *Flow) sent(p packet) {
	f.release(p.cost())
	f.FromLocal.Add(p.size())
}

func (f *Flow) drop(p packet) {
	f.release(p.cost())
	f.Dropped.Add(1)
}

func (f *Flow) release(cost int64) {
	f.held.Add(-cost)
	f.Held.cost.Add(-cost)
}

// aside sends a packet over the stream.
func (f *Flow) aside(p packet) {
	select {
	case f.side <- p:
		if f.ctx.Err() != nil {
			f.dropAside()
		}
	default:
		f.drop(p)
	}
}

// dropAside gives back what an ended flow held.
func (f *Flow) dropAside() {
	for {
		select {
		case p := <-f.side:
			f.drop(p)
		default:
			return
		}
	}
}

// toStream sends what goes over the stream, until the flow is idle.
func (f *Flow) toStream() error {
	timer := time.NewTimer(f.Idle)
	defer timer.Stop()
	for {
		select {
		case p := <-f.side:
			if _, err := f.stream.Write(p.framed()); err != nil {
				return err
			}
			f.sent(p)
		case <-timer.C:
			left := f.Idle - (time.Since(epoch) - f.Used())
			if left <= 0 {
				return nil
			}
			timer.Reset(left)
		case <-f.ctx.Done():
			return nil
		}
	}
}

// fromStream delivers what comes over the stream.
func (f *Flow) fromStream() error {
	for {
		n, err := wire.ReadLength(f.stream)
		if err != nil {
			return err
		}
		b := buffers.get()
		if _, err = io.ReadFull(f.stream, b[:n]); err == nil {
			f.conn.Read.Add(int64(n))
			f.fromPeer(b[:n])
		}
		buffers.put(b)
		if err != nil {
			return err
		}
	}
}

// fromPeer delivers a datagram.
func (f *Flow) fromPeer(payload []byte) {
	f.touch()
	f.Deliver(payload)
	f.ToLocal.Add(int64(len(payload)))
}

// epoch makes times numbers that no clock turns back.
var epoch = time.Now()

func (f *Flow) touch() { f.used.Store(int64(time.Since(epoch))) }

// Used is when a datagram went last, after some beginning.
func (f *Flow) Used() time.Duration { return time.Duration(f.used.Load()) }
