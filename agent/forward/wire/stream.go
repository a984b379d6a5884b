package wire

import (
	"context"
	"net"
	"time"

	"github.com/quic-go/quic-go"
)

// Stream carries one TCP connection or one UDP session between two forwarders. It is a QUIC stream
// or its equivalent over TLS (package tcpstream). In both cases, a reset is reported as a
// *quic.StreamError, and a closed connection as a *quic.ApplicationError.
type Stream interface {
	StreamID() quic.StreamID
	Read([]byte) (int, error)
	// Peek waits for the next byte and copies it to the buffer without consuming it. The buffer has
	// room for one byte.
	Peek([]byte) (int, error)
	Write([]byte) (int, error)
	// Close ends the sending direction after all written bytes.
	Close() error
	CancelRead(quic.StreamErrorCode)
	CancelWrite(quic.StreamErrorCode)
	SetDeadline(time.Time) error
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
	// Context returns a context that ends when nothing more can be sent. After Close, its cause is
	// quic.ErrStreamClosed.
	Context() context.Context
}

// Conn is a connection between two forwarders, over QUIC or TCP.
type Conn interface {
	AcceptStream(context.Context) (Stream, error)
	CloseWithError(quic.ApplicationErrorCode, string) error
	// Context returns a context that ends when the connection ends. Its cause is the reason.
	Context() context.Context
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
}
