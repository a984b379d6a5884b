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

// maxEarly is the maximum number of bytes of a process that are sent before the far side has
// answered.
const maxEarly = 32 << 10

// early sends the first bytes of a process before the far side has answered. It also keeps the
// bytes. If the stream is not served, they are sent again on another stream.
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

// release frees the kept bytes.
func (e *early) release() {
	if e.buf != nil {
		earlyBuffers.Put(e.buf)
		e.buf, e.kept = nil, nil
	}
}

// sendUntilAnswer sends bytes of the process until the far side answers. It returns the error of
// the answer, or context.Canceled if the process has closed its connection.
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
		// End a write to the stream that is blocked.
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

// send sends bytes of the process until the data ends or maxEarly bytes are sent. It returns an
// error only if the process has reset its connection. Errors of the stream appear in the answer.
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
