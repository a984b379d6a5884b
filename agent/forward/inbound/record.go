package inbound

import (
	"context"
	"errors"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/splice"
	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/wire"
)

// record describes a stream that is being served, for metrics, the access log and traces.
type record struct {
	server  *Server
	in      *transport.Incoming
	service published
	begun   time.Time
	counted telemetry.Conn
	end     string // reason why the stream ended
}

// see counts a stream after its upstream was connected. The caller must call done on the record
// when the stream has ended.
func (s *Server) see(in *transport.Incoming, service published, begun time.Time) *record {
	r := &record{server: s, in: in, service: service, begun: begun, counted: s.Metrics.Begin(telemetry.In, in.Target, service.Port, in.Peer.ID), end: wire.Done.String()}
	r.counted.Opened(time.Since(begun))
	return r
}

func (r *record) done() {
	r.counted.Done()
	if !r.server.Access.Wants(r.service.AccessLog) {
		return
	}
	r.server.Access.Write(telemetry.Access{
		Caller: r.in.Peer.ID, Service: r.in.Target, Port: r.service.Port, From: r.in.RemoteAddr().String(), Upstream: r.service.Upstream,
		Protocol: r.service.Protocol, Transport: r.in.Transport, Begun: r.begun, Duration: time.Since(r.begun),
		Sent: r.counted.Sent.Load(), Received: r.counted.Received.Load(), End: r.end,
	})
}

// end returns the reason for the end of a stream. If possible, it uses the words for refusals.
func end(err error) string {
	var stream *quic.StreamError
	var conn *quic.ApplicationError
	switch {
	case err == nil:
		return wire.Done.String()
	case errors.Is(err, splice.ErrLocal):
		return "reset-by-service"
	case errors.Is(err, context.Canceled):
		return wire.Stopping.String()
	case errors.As(err, &stream):
		return "reset-by-caller"
	case errors.As(err, &conn) && wire.Code(conn.ErrorCode) == wire.Reset:
		return wire.Stopping.String()
	case errors.As(err, &conn):
		return wire.Code(conn.ErrorCode).String()
	}
	return "lost"
}

// trace records how the opening of a stream ended, as a span of its trace.
func (s *Server) trace(in *transport.Incoming, st wire.Stream, begun time.Time, code wire.Code) {
	if s.Traces == nil {
		return
	}
	c, err := in.Trace(st)
	if err != nil || !s.Traces.Samples(c) {
		return
	}
	span := telemetry.Span{
		TraceContext: c, Publisher: true, Name: "connect " + in.Target.Short(), Begun: begun, Ended: time.Now(),
		Attributes: telemetry.SpanAttributes(in.Peer.ID, in.Target, in.Transport, in.RemoteAddr().String()),
	}
	if code != wire.Done {
		span.Error = code.String()
	}
	s.Traces.Add(span)
}
