package wire

import (
	"context"
	"net"
	"time"

	"github.com/quic-go/quic-go"
)

// Stream carries one TCP connection or UDP session between two forwarders. It is a QUIC stream or
// its equivalent over TLS (package tcpstream). Errors are QUIC's in both cases: a *quic.StreamError
// for a reset, a *quic.ApplicationError for a closed connection.
type Stream interface {
	StreamID() quic.StreamID
	Read([]byte) (int, error)
	// Peek waits for the next byte and copies it without consuming it. The buffer has room for one
	// byte.
	Peek([]byte) (int, error)
	Write([]byte) (int, error)
	// Close ends the sending direction in order.
	Close() error
	CancelRead(quic.StreamErrorCode)
	CancelWrite(quic.StreamErrorCode)
	SetDeadline(time.Time) error
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
	// Context ends when nothing more can be sent. Its cause is quic.ErrStreamClosed after Close.
	Context() context.Context
}

// Conn is a connection between two forwarders, over either transport.
type Conn interface {
	AcceptStream(context.Context) (Stream, error)
	CloseWithError(quic.ApplicationErrorCode, string) error
	// Context ends with the connection. Its cause is the reason.
	Context() context.Context
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
}
