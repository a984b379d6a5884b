package transport

import (
	"crypto/tls"
	"errors"

	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/wire"
)

// hasTLS is implemented by streams over TCP and connections over QUIC. It gives access to the keys
// of the TLS connection, from which trace contexts are derived.
type hasTLS interface{ TLS() tls.ConnectionState }

func (c quicConn) TLS() tls.ConnectionState  { return c.ConnectionState().TLS }
func (l *quicLink) TLS() tls.ConnectionState { return l.ConnectionState().TLS }

// Trace returns the trace context of the stream. Both ends of the stream derive the same context,
// so that their spans belong to one trace.
func (s *Stream) Trace() (telemetry.TraceContext, error) { return traceOf(s.Stream, s.conn.link) }

// Trace returns the trace context of a stream on this connection. Both ends of the stream derive
// the same context, so that their spans belong to one trace.
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
