package wire

import (
	"context"
	"net"
	"time"

	"github.com/quic-go/quic-go"
)

// Stream carries one TCP connection or UDP session between two forwarders: a QUIC stream,
// or its like over TLS (package tcpstream). Errors are QUIC's on both: a *quic.StreamError
// of a reset, a *quic.ApplicationError of a closed connection.
type Stream interface {
	StreamID() quic.StreamID
	Read([]byte) (int, error)
	// Peek waits until a byte or the end has come, and shows it. The buffer has room for one.
	Peek([]byte) (int, error)
	Write([]byte) (int, error)
	// Close ends what is sent, in order.
	Close() error
	CancelRead(quic.StreamErrorCode)
	CancelWrite(quic.StreamErrorCode)
	SetDeadline(time.Time) error
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
	// Context ends when nothing more can be sent; its cause is quic.ErrStreamClosed after
	// Close.
	Context() context.Context
}

// Conn is a connection between two forwarders, over either transport.
type Conn interface {
	AcceptStream(context.Context) (Stream, error)
	CloseWithError(quic.ApplicationErrorCode, string) error
	// Context ends with the connection; its cause is why.
	Context() context.Context
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
}
