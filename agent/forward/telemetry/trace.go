package telemetry

import (
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
)

// traceLabel is the label with which trace IDs are exported from the keys of a TLS connection (RFC
// 5705).
const traceLabel = "EXPORTER-florete-trace"

// TraceContext identifies the trace of a stream between two forwarders. The trace has two spans.
// The span of the caller's side lasts from the connection of a local process until the peer has
// answered. The span of the publishing side is its child, and lasts until the upstream is
// connected.
//
// A TraceContext is not sent over the network. Both sides derive it from the keys of their TLS
// connection and the number of the stream (RFC 5705): 16 bytes for the trace and 8 for the caller's
// span. A peer can therefore neither make another host record a trace nor forge the relation
// between spans. Whether a trace is kept depends only on its ID, so two sides that sample at the
// same rate keep the same traces.
type TraceContext struct {
	Trace  [16]byte
	Caller [8]byte // span of the caller's side
}

// TraceOf derives the trace context of a stream from the keys of its TLS connection and the ID of
// the stream. Both ends of the connection get the same result.
func TraceOf(cs tls.ConnectionState, stream quic.StreamID) (c TraceContext, err error) {
	b, err := cs.ExportKeyingMaterial(traceLabel, binary.BigEndian.AppendUint64(nil, uint64(stream)), len(c.Trace)+len(c.Caller))
	if err != nil {
		return c, err
	}
	copy(c.Trace[:], b)
	copy(c.Caller[:], b[len(c.Trace):])
	return c, nil
}

// TraceAlone returns a random trace context, for a connection that failed before it had a stream.
func TraceAlone() (c TraceContext) {
	rand.Read(c.Trace[:])
	rand.Read(c.Caller[:])
	return c
}

// Span is the part of a trace that one of the two forwarders records, from Begun to Ended.
type Span struct {
	TraceContext
	Publisher  bool // the span is of the publishing side, not of the caller's
	Name       string
	Begun      time.Time
	Ended      time.Time
	Attributes map[string]string
	Error      string // empty if there was no error
}

// SpanAttributes returns the attributes of a span: the caller, the service, the transport between
// the two forwarders, and the address of the other forwarder.
func SpanAttributes(caller, service spiffe.ID, over document.Transport, address string) map[string]string {
	return map[string]string{"florete.caller": caller.String(), "florete.service": service.String(), "florete.transport": string(over), "network.peer.address": address}
}

// Enumeration values of OTLP, the protocol in which spans are sent.
const (
	kindServer = 2
	kindClient = 3
	statusOK   = 1
	statusErr  = 2
)

type (
	otlpSpan struct {
		TraceID    string          `json:"traceId"`
		SpanID     string          `json:"spanId"`
		Parent     string          `json:"parentSpanId,omitempty"`
		Name       string          `json:"name"`
		Kind       int             `json:"kind"`
		Start      int64           `json:"startTimeUnixNano,string"`
		End        int64           `json:"endTimeUnixNano,string"`
		Attributes []otlpAttribute `json:"attributes"`
		Status     otlpStatus      `json:"status"`
	}
	otlpAttribute struct {
		Key   string    `json:"key"`
		Value otlpValue `json:"value"`
	}
	otlpValue struct {
		StringValue string `json:"stringValue"`
	}
	otlpStatus struct {
		Code    int    `json:"code"`
		Message string `json:"message,omitempty"`
	}
	otlpScope struct {
		Name string `json:"name"`
	}
	otlpResource struct {
		Attributes []otlpAttribute `json:"attributes"`
	}
	otlpScopeSpans struct {
		Scope otlpScope  `json:"scope"`
		Spans []otlpSpan `json:"spans"`
	}
	otlpResourceSpans struct {
		Resource otlpResource     `json:"resource"`
		Scopes   []otlpScopeSpans `json:"scopeSpans"`
	}
	otlpRequest struct {
		Resources []otlpResourceSpans `json:"resourceSpans"`
	}
)

// otlp returns the span in the form in which OTLP sends it.
func (s Span) otlp() otlpSpan {
	o := otlpSpan{
		TraceID: hex.EncodeToString(s.Trace[:]), SpanID: hex.EncodeToString(s.Caller[:]), Name: s.Name, Kind: kindClient,
		Start: s.Begun.UnixNano(), End: s.Ended.UnixNano(), Attributes: otlpAttributes(s.Attributes), Status: otlpStatus{Code: statusOK},
	}
	if s.Publisher {
		var own [8]byte
		rand.Read(own[:])
		o.Kind, o.Parent, o.SpanID = kindServer, o.SpanID, hex.EncodeToString(own[:])
	}
	if s.Error != "" {
		o.Status = otlpStatus{statusErr, s.Error}
	}
	return o
}
