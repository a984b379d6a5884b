package transport

import (
	"crypto/tls"
	"errors"

	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/wire"
)

// hasTLS is a stream over TCP, or a connection over QUIC.
type hasTLS interface{ TLS() tls.ConnectionState }

func (c quicConn) TLS() tls.ConnectionState  { return c.ConnectionState().TLS }
func (l *quicLink) TLS() tls.ConnectionState { return l.ConnectionState().TLS }

// Trace is what both ends call the stream.
func (s *Stream) Trace() (telemetry.TraceContext, error) { return traceOf(s.Stream, s.conn.link) }

// Trace is what both ends call a stream of the connection.
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
