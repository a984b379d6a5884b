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

// traceLabel is of the exporter.
const traceLabel = "EXPORTER-florete-trace"

// TraceContext names one stream between two forwarders at both of its ends. Its trace has the span of the caller's
// side, from a process's connection to the answer, and below it that of the publishing side, until the upstream is connected.
//
// Nothing of it is on the wire. Both sides derive the IDs from the keys of their TLS connection
// and the number of the stream (RFC 5705): the trace's, of 16 bytes, and the caller's span, of
// 8. Which traces are kept follows from their ID, so both keep the same ones where both keep
// as many; no peer has another host record anything, nor can it forge what belongs together.
type TraceContext struct {
	Trace  [16]byte
	Caller [8]byte // the caller's span
}

// TraceOf is the context of a stream on a connection.
func TraceOf(cs tls.ConnectionState, stream quic.StreamID) (c TraceContext, err error) {
	b, err := cs.ExportKeyingMaterial(traceLabel, binary.BigEndian.AppendUint64(nil, uint64(stream)), len(c.Trace)+len(c.Caller))
	if err != nil {
		return c, err
	}
	copy(c.Trace[:], b)
	copy(c.Caller[:], b[len(c.Trace):])
	return c, nil
}

// TraceAlone is the context of what has no stream.
func TraceAlone() (c TraceContext) {
	rand.Read(c.Trace[:])
	rand.Read(c.Caller[:])
	return c
}

// Span is one side's part of a trace.
type Span struct {
	TraceContext
	Publisher  bool // else it is the caller's
	Name       string
	Begun      time.Time
	Ended      time.Time
	Attributes map[string]string
	Error      string // empty: all went well
}

// SpanAttributes returns the attributes that a span has of a connection. address is that of the
// forwarder at the other side.
func SpanAttributes(caller, service spiffe.ID, over document.Transport, address string) map[string]string {
	return map[string]string{"florete.caller": caller.String(), "florete.service": service.String(), "florete.transport": string(over), "network.peer.address": address}
}

// The numbers of OTLP.
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

// otlp is a span as it is sent.
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
