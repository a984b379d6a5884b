package tcpstream

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/forward/wire"
)

// relayed is the lower part of a Socket that uses a stream through a relay.
type relayed struct {
	wire.Stream
	local, remote net.Addr
	released      func()

	once           sync.Once
	killed         atomic.Bool
	received, sent atomic.Int64
	one            [1]byte    // buffer for Peek
	watching       sync.Mutex // guards watched
	watched        chan error // result of watch; nil while watch does not run
}

// NewRelayed returns a Socket that sends and receives over a stream through a relay. Its addresses
// are the given ones, which are those of the connection to the relay. When the Socket is closed, it
// closes the stream and calls released.
func NewRelayed(st wire.Stream, local, remote net.Addr, released func()) *Socket {
	return &Socket{lower: &relayed{Stream: st, local: local, remote: remote, released: released}}
}

func (r *relayed) LocalAddr() net.Addr  { return r.local }
func (r *relayed) RemoteAddr() net.Addr { return r.remote }

func (r *relayed) Write(b []byte) (int, error) {
	n, err := r.Stream.Write(b)
	r.sent.Add(int64(n))
	return n, err
}

func (r *relayed) CloseWrite() error {
	r.quiet() // ends watch, because the reader is about to read the rest
	return r.Stream.Close()
}

func (r *relayed) SetLinger(seconds int) error {
	r.killed.Store(seconds == 0)
	return nil
}

// Close ends both directions of the stream. The other side sees the end of data or, if SetLinger(0)
// was called before, a reset.
func (r *relayed) Close() error {
	r.once.Do(func() {
		code := wire.Done
		if r.killed.Load() {
			code = wire.Reset
			r.CancelWrite(quic.StreamErrorCode(code))
		} else {
			_ = r.Stream.Close()
		}
		r.CancelRead(quic.StreamErrorCode(code))
		r.released()
	})
	return nil
}

// receive waits for bytes and returns them in a pooled buffer. It holds no buffer while it waits.
func (r *relayed) receive(most int) (b []byte, n int, err error) {
	if _, err := r.Peek(r.one[:]); err != nil {
		if errors.Is(err, io.EOF) {
			_, _ = r.Stream.Read(r.one[:]) // quic-go frees the stream only after a Read that returns the end
			err = nil
		}
		return nil, 0, err
	}
	b = usage.GetBuffer()
	n, err = r.Stream.Read(b[:min(len(b), most)])
	r.received.Add(int64(n))
	if n > 0 {
		err = nil // the next Read returns the error again
	}
	return b, n, err
}

// watch peeks at the stream in a goroutine, until quiet is called. Without watch, quiet could not
// tell whether data has arrived.
func (r *relayed) watch() {
	r.watching.Lock()
	defer r.watching.Unlock()
	watched := make(chan error, 1)
	r.watched = watched
	go func() {
		_, err := r.Peek(r.one[:])
		watched <- err
	}()
}

// quiet ends watch. It reports whether nothing has arrived on the stream since watch began: neither
// data nor the end of data.
func (r *relayed) quiet() bool {
	r.watching.Lock()
	defer r.watching.Unlock()
	if r.watched == nil {
		return true
	}
	_ = r.SetReadDeadline(past)
	err := <-r.watched
	r.watched = nil
	_ = r.SetReadDeadline(time.Time{})
	return errors.Is(err, os.ErrDeadlineExceeded)
}

func (r *relayed) stats() (usage.Stats, error) {
	return usage.Stats{Received: r.received.Load(), Sent: r.sent.Load()}, nil
}
