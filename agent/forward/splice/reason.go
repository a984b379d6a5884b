package splice

import (
	"context"
	"errors"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/wire"
)

// Reason returns the reason for the end of a connection, for logs. The argument err is the error
// with which the connection ended (see Start). The arguments local and remote are words for the
// program at the local connection and the program at the other end of the stream: "service" and
// "caller". If possible, Reason uses the words for refusals.
func Reason(err error, local, remote string) string {
	var stream *quic.StreamError
	var conn *quic.ApplicationError
	switch {
	case err == nil:
		return wire.Done.String()
	case errors.Is(err, ErrLocal):
		return "reset-by-" + local
	case errors.Is(err, context.Canceled):
		return wire.Stopping.String()
	case errors.As(err, &stream):
		return "reset-by-" + remote
	case errors.As(err, &conn) && wire.Code(conn.ErrorCode) == wire.Reset:
		return wire.Stopping.String()
	case errors.As(err, &conn):
		return wire.Code(conn.ErrorCode).String()
	}
	return "lost"
}
