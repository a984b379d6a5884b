// Package trace reports how connections are opened to a collector of OpenTelemetry traces, over
// OTLP/HTTP with JSON (opentelemetry.io/docs/specs/otlp). A trace is one stream between two
// forwarders: the span of the caller's side, from a process's connection to the answer, and
// below it the publishing side's, until the upstream is connected.
//
// Nothing of it is on the wire. Both sides derive the IDs from the keys of their TLS connection
// and the number of the stream (RFC 5705): the trace's, of 16 bytes, and the caller's span, of
// 8. Which traces are kept follows from their ID, so both keep the same ones where both keep
// as many; no peer has another host record anything, nor can it forge what belongs together.
package trace

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

// label is of the exporter.
const label = "EXPORTER-florete-trace"

// Context is what both ends of a stream call it.
type Context struct {
	Trace  [16]byte
	Caller [8]byte // the caller's span
}

// Of is the context of a stream on a connection.
func Of(cs tls.ConnectionState, stream quic.StreamID) (c Context, err error) {
	b, err := cs.ExportKeyingMaterial(label, binary.BigEndian.AppendUint64(nil, uint64(stream)), len(c.Trace)+len(c.Caller))
	if err != nil {
		return c, err
	}
	copy(c.Trace[:], b)
	copy(c.Caller[:], b[len(c.Trace):])
	return c, nil
}

// Alone is the context of what has no stream.
func Alone() (c Context) {
	rand.Read(c.Trace[:])
	rand.Read(c.Caller[:])
	return c
}

// Span is one side's part of a trace.
type Span struct {
	Context
	Publisher  bool // else it is the caller's
	Name       string
	Begun      time.Time
	Ended      time.Time
	Attributes map[string]string
	Error      string // empty: all went well
}

// Attributes are what a span has of a connection. address is where the forwarder at the other
// side is.
func Attributes(caller, service spiffe.ID, over document.Transport, address string) map[string]string {
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
		Start: s.Begun.UnixNano(), End: s.Ended.UnixNano(), Attributes: attributes(s.Attributes), Status: otlpStatus{Code: statusOK},
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
