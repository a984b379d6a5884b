package telemetry

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/florete/florete/internal/release"
)

const (
	// queue is the number of spans that may wait to be sent. Further spans are dropped.
	queue = 2048
	batch = 512
	// interval is the time that a span waits for others of its batch.
	interval = time.Second
	timeout  = 5 * time.Second
)

// Tracer sends spans to a collector of traces over OTLP. A nil Tracer keeps no traces. A Tracer is
// safe for concurrent use.
type Tracer struct {
	url   string
	every uint64
	log   *slog.Logger
	host  func() string
	spans chan Span
	lost  atomic.Int64
}

// NewTracer returns a Tracer that sends to the OTLP collector at the given URL, such as
// http://127.0.0.1:4318. If every is 100, it keeps one in 100 traces. The function host returns the
// name of this host. If the URL is empty, NewTracer returns nil without an error.
func NewTracer(endpoint string, every int, host func() string, log *slog.Logger) (*Tracer, error) {
	if endpoint == "" {
		return nil, nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, fmt.Errorf("traces to %q, want the URL of a collector: http://127.0.0.1:4318", endpoint)
	}
	if every < 1 {
		return nil, fmt.Errorf("one trace in %d, want one in 1 or more", every)
	}
	return &Tracer{url: u.JoinPath("v1/traces").String(), every: uint64(every), host: host, log: log, spans: make(chan Span, queue)}, nil
}

// Samples reports whether the Tracer keeps a trace. The caller adds the spans of a trace only if it
// does.
func (t *Tracer) Samples(c TraceContext) bool {
	return t != nil && binary.BigEndian.Uint64(c.Trace[:])%t.every == 0
}

// Add queues a span for sending. It does not block. If the queue is full, the span is dropped.
func (t *Tracer) Add(s Span) {
	select {
	case t.spans <- s:
	default:
		t.lost.Add(1)
	}
}

// Run sends queued spans to the collector until ctx ends. It then sends the spans that are still
// queued, and returns. Spans that cannot be sent are lost, which is logged.
func (t *Tracer) Run(ctx context.Context) {
	if t == nil {
		return
	}
	client := &http.Client{Timeout: timeout, Transport: &http.Transport{MaxIdleConns: 1, IdleConnTimeout: time.Minute}} // no proxy, because spans contain the names of callers
	defer client.CloseIdleConnections()
	failing := false
	for ended := false; !ended; {
		spans, over := t.collect(ctx)
		ended = over
		if len(spans) == 0 {
			continue
		}
		err := t.send(client, spans)
		if lost := t.lost.Swap(0); lost > 0 {
			t.log.Warn("traces: more than the collector takes", "lost", lost)
		}
		if err != nil && !failing {
			t.log.Warn("traces: not sent, and lost until this works", "error", err)
		}
		failing = err != nil
	}
}

// collect waits for a batch of spans. The result ended is true if ctx has ended and no more spans
// are queued.
func (t *Tracer) collect(ctx context.Context) (spans []Span, ended bool) {
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for len(spans) < batch {
		select {
		case s := <-t.spans:
			spans = append(spans, s)
		case <-timer.C:
			return spans, false
		case <-ctx.Done():
			for len(spans) < batch {
				select {
				case s := <-t.spans:
					spans = append(spans, s)
				default:
					return spans, true
				}
			}
			return spans, false
		}
	}
	return spans, false
}

func (t *Tracer) send(client *http.Client, spans []Span) error {
	all := make([]otlpSpan, len(spans))
	for i, s := range spans {
		all[i] = s.otlp()
	}
	body, err := json.Marshal(otlpRequest{[]otlpResourceSpans{{
		Resource: otlpResource{otlpAttributes(map[string]string{"service.name": "florete-forwarder", "service.version": release.Version(), "host.name": t.host()})},
		Scopes:   []otlpScopeSpans{{otlpScope{"github.com/florete/florete/agent/forward"}, all}},
	}}})
	if err != nil {
		return err
	}
	res, err := client.Post(t.url, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("%s: %s", t.url, res.Status)
	}
	return nil
}

func otlpAttributes(m map[string]string) []otlpAttribute {
	all := []otlpAttribute{}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		all = append(all, otlpAttribute{k, otlpValue{m[k]}})
	}
	return all
}
