package inbound

import (
	"time"

	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/wire"
)

// record describes a stream that is being served, for metrics, the access log and traces.
type record struct {
	server  *Server
	in      *transport.Incoming
	service published
	origin  wire.Origin // of a stranger
	begun   time.Time
	counted telemetry.Conn
	end     string // reason why the stream ended
}

// see counts a stream whose upstream is connected, and returns the record of the stream. The caller
// must call the record's method done when the stream has ended.
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
	from := r.in.RemoteAddr().String()
	if r.origin.From.IsValid() {
		from = r.origin.From.String()
	}
	r.server.Access.Write(telemetry.Access{
		Caller: r.in.Peer.ID, Service: r.in.Target, Port: r.service.Port, From: from, Upstream: r.service.Upstream,
		Protocol: r.service.Protocol, Transport: r.in.Transport, Begun: r.begun, Duration: time.Since(r.begun),
		Sent: r.counted.Sent.Load(), Received: r.counted.Received.Load(), End: r.end,
	})
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
