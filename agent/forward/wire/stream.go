package wire

import (
	"context"
	"net"
	"time"

	"github.com/quic-go/quic-go"
)

// Stream carries one TCP connection or one UDP session between two forwarders, independently of the
// transport. It is a QUIC stream, or its equivalent over TLS (package tcpstream). Both return the
// errors of quic-go: a *quic.StreamError after a reset, and a *quic.ApplicationError after the
// connection was closed.
type Stream interface {
	StreamID() quic.StreamID
	Read([]byte) (int, error)
	// Peek waits for the next byte and copies it into the buffer. The next Read returns the same
	// byte again. The buffer must have room for one byte.
	Peek([]byte) (int, error)
	Write([]byte) (int, error)
	// Close ends the sending direction after all data that was written.
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

// Conn is the accepting side of a connection between two forwarders, over QUIC or over TCP. The
// other side opens streams, each of which carries a TCP connection or a UDP session.
type Conn interface {
	AcceptStream(context.Context) (Stream, error)
	CloseWithError(quic.ApplicationErrorCode, string) error
	// Context returns a context that ends with the connection. Its cause is the reason for the end.
	Context() context.Context
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
}
