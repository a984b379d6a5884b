package transport

import (
	"crypto/tls"
	"errors"

	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/wire"
)

// hasTLS is implemented by streams over TCP and connections over QUIC.
type hasTLS interface{ TLS() tls.ConnectionState }

func (c quicConn) TLS() tls.ConnectionState  { return c.ConnectionState().TLS }
func (l *quicLink) TLS() tls.ConnectionState { return l.ConnectionState().TLS }

// Trace returns the context of the stream, which is the same at both ends.
func (s *Stream) Trace() (telemetry.TraceContext, error) { return traceOf(s.Stream, s.conn.link) }

// Trace returns the context of a stream of the connection, which is the same at both ends.
func (in *Incoming) Trace(st wire.Stream) (telemetry.TraceContext, error) {
	return traceOf(st, in.conn)
}

func traceOf(st wire.Stream, conn any) (telemetry.TraceContext, error) {
	for _, x := range []any{st, conn} {
		if over, ok := x.(hasTLS); ok {
			return telemetry.TraceOf(over.TLS(), st.StreamID())
		}
	}
	return telemetry.TraceContext{}, errors.New("a stream without TLS")
}
