package outbound

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/wire"
)

// maxEarly is how many bytes of a process flow before the far side has answered.
const maxEarly = 32 << 10

// early sends what a process writes before the far side has answered, and keeps it for
// the next stream, should this one not be served.
type early struct {
	conn *net.TCPConn
	buf  *[maxEarly]byte
	kept []byte
}

var earlyBuffers = sync.Pool{New: func() any { return new([maxEarly]byte) }}

func newEarly(conn *net.TCPConn) *early {
	b := earlyBuffers.Get().(*[maxEarly]byte)
	return &early{conn, b, b[:0]}
}

// release gives back what was kept.
func (e *early) release() {
	if e.buf != nil {
		earlyBuffers.Put(e.buf)
		e.buf, e.kept = nil, nil
	}
}

// sendUntilAnswer sends until the answer, which it waits for. The error is the answer's, or
// context.Canceled when the process has gone.
func (e *early) sendUntilAnswer(ctx context.Context, st *transport.Stream) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sent := make(chan error, 1)
	go func() {
		err := e.send(st.Stream)
		if err != nil {
			cancel()
		}
		sent <- err
	}()
	err := answer(ctx, st)
	if err != nil {
		// So that nothing waits for this stream any more.
		st.CancelWrite(quic.StreamErrorCode(wire.Reset))
	}
	e.conn.SetReadDeadline(time.Unix(1, 0))
	gone := <-sent
	e.conn.SetReadDeadline(time.Time{})
	if gone != nil && err == nil {
		st.CancelWrite(quic.StreamErrorCode(wire.Reset))
		st.CancelRead(quic.StreamErrorCode(wire.Reset))
		err = context.Canceled
	}
	return err
}

// send returns an error when the process has reset its connection. What becomes of the
// stream is in the answer, and what comes after the end of data or maxEarly bytes
// is for later.
func (e *early) send(st wire.Stream) error {
	if _, err := st.Write(e.kept); err != nil {
		return nil
	}
	for len(e.kept) < maxEarly {
		had := len(e.kept)
		n, err := e.conn.Read(e.buf[had:])
		e.kept = e.buf[:had+n]
		if n > 0 {
			if _, err := st.Write(e.kept[had:]); err != nil {
				return nil
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}
