package inbound

import (
	"time"

	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/sessions"
)

// record describes a stream that is being served, for metrics, the access log and traces.
type record struct {
	server  *Server
	in      *transport.Incoming
	service published
	origin  wire.Origin // of a stranger
	begun   time.Time
	counted telemetry.Conn
	end     string              // reason why the stream ended
	session *status.OpenSession // nil if it is no session
}

// see counts a stream whose upstream is connected, and returns the record of the stream. The caller
// must call the record's method done when the stream has ended.
func (s *Server) see(in *transport.Incoming, service published, begun time.Time) *record {
	r := &record{server: s, in: in, service: service, begun: begun, counted: s.Metrics.Begin(telemetry.In, in.Target, service.Port, in.Peer.ID), end: wire.Done.String()}
	r.counted.Opened(time.Since(begun))
	return r
}

// endedByOperator is the reason in the access log for a session that an operator ended.
const endedByOperator = "ended-by-operator"

// open adds the stream to the open sessions if the service has sessions.
func (r *record) open(st wire.Stream) {
	if r.service.Remote == document.NotRemote {
		return
	}
	about := sessions.Session{Service: r.in.Target, Protocol: r.service.Remote, Caller: r.in.Peer.ID, From: r.from(), Begun: r.begun}
	r.session = r.server.Sessions.Add(about, func() (sent, received int64) {
		return r.counted.Sent.Load(), r.counted.Received.Load()
	}, func() { transport.Reset(st, wire.Denied) })
}

func (r *record) done() {
	r.counted.Done()
	var id, by string
	if r.session != nil {
		id, by = r.session.ID(), r.session.Ended()
	}
	log := r.service.AccessLog
	if by != "" {
		r.end, log = endedByOperator, document.AccessFull
	}
	if !r.server.Access.Wants(log) {
		return
	}
	r.server.Access.Write(telemetry.Access{
		Caller: r.in.Peer.ID, Service: r.in.Target, Port: r.service.Port, From: r.from(), Upstream: r.service.Upstream,
		Protocol: r.service.Protocol, Transport: r.in.Transport, Begun: r.begun, Duration: time.Since(r.begun),
		Sent: r.counted.Sent.Load(), Received: r.counted.Received.Load(), End: r.end,
		Session: id, By: by,
	})
}

// from returns the address of the caller's forwarder, or of a stranger.
func (r *record) from() string {
	if r.origin.From.IsValid() {
		return r.origin.From.String()
	}
	return r.in.RemoteAddr().String()
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
