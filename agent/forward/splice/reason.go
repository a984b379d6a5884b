package splice

import (
	"context"
	"errors"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/wire"
)

// Reason returns the reason for the end of a connection, for logs, such as "reset-by-caller" or
// "lost". The error is the one with which Start called ended. The words local and remote name the
// programs at the two ends of the connection: "service" and "caller", or the reverse.
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
