package outbound

import (
	"errors"
	"time"

	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/internal/document"
)

// trace records the opening of a stream as a span of its trace. If no stream was opened, the
// argument err is the reason.
func (s *Server) trace(c connection, st *transport.Stream, begun time.Time, err error) {
	if s.Traces == nil {
		return
	}
	span := telemetry.Span{Name: "open " + c.target.ID().Short(), Begun: begun, Ended: time.Now()}
	var was *tracedError
	var noKeys error
	switch {
	case st != nil:
		span.TraceContext, noKeys = st.Trace()
		span.Attributes = telemetry.SpanAttributes(c.as, c.target.ID(), st.Transport(), st.Forwarder())
	case errors.As(err, &was):
		span.TraceContext, span.Attributes = was.trace, telemetry.SpanAttributes(c.as, c.target.ID(), was.over, was.forwarder)
	default:
		span.TraceContext, span.Attributes = telemetry.TraceAlone(), telemetry.SpanAttributes(c.as, c.target.ID(), "", "")
	}
	if denied := explain(err); denied != nil {
		span.Error = denied.reason
	}
	if noKeys == nil && s.Traces.Samples(span.TraceContext) {
		s.Traces.Add(span)
	}
}

// tracedError is the error of a stream that was not served, with the ID of the stream's trace.
type tracedError struct {
	error
	trace     telemetry.TraceContext
	over      document.Transport
	forwarder string
}

func (e *tracedError) Unwrap() error { return e.error }

// traced adds the ID of a stream's trace to an error, so that a person can find the trace. If
// traces are not enabled, it returns the error unchanged.
func (s *Server) traced(st *transport.Stream, err error) error {
	if s.Traces == nil {
		return err
	}
	c, noKeys := st.Trace()
	if noKeys != nil {
		return err
	}
	return &tracedError{err, c, st.Transport(), st.Forwarder()}
}
