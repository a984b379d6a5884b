package telemetry_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/florete/florete/agent/forward/telemetry"
)

func TestNewTracer(t *testing.T) {
	if tr, err := telemetry.NewTracer("", 0, nil, nil); tr != nil || err != nil || tr.Samples(telemetry.TraceAlone()) {
		t.Errorf("without an endpoint: %v, %v", tr, err)
	}
	for endpoint, want := range map[string]string{
		"127.0.0.1:4318":           "want the URL of a collector",
		"ftp://127.0.0.1":          "want the URL of a collector",
		"http://me:secret@there/":  "want the URL of a collector",
		"http://127.0.0.1:4318/ok": "one trace in 0",
	} {
		if _, err := telemetry.NewTracer(endpoint, 0, nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}

// TestTracerSamples checks that one in so many connections is traced, and the same ones at both
// ends.
func TestTracerSamples(t *testing.T) {
	one, _ := telemetry.NewTracer("http://x", 10, nil, nil)
	other, _ := telemetry.NewTracer("http://y", 10, nil, nil)
	n := 0
	for range 10000 {
		c := telemetry.TraceAlone()
		if one.Samples(c) != other.Samples(c) {
			t.Fatal("two hosts keep different traces")
		}
		if one.Samples(c) {
			n++
		}
	}
	if n < 800 || n > 1200 {
		t.Errorf("%d of 10000, want one in 10", n)
	}
}

// TestTracer checks that spans that are still queued at the end are sent, and that a collector that
// does not answer blocks nothing and is logged once.
func TestTracer(t *testing.T) {
	var spans, calls atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		b, _ := io.ReadAll(r.Body)
		var body struct {
			ResourceSpans []struct {
				ScopeSpans []struct{ Spans []json.RawMessage }
			}
		}
		if err := json.Unmarshal(b, &body); err != nil {
			t.Error(err)
		}
		spans.Add(int64(len(body.ResourceSpans[0].ScopeSpans[0].Spans)))
	}))
	defer s.Close()
	var log strings.Builder
	tr, err := telemetry.NewTracer(s.URL, 1, func() string { return "ursula" }, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	for range 5000 { // more than wait
		tr.Add(telemetry.Span{TraceContext: telemetry.TraceAlone(), Begun: time.Now(), Ended: time.Now()})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tr.Run(ctx)
	if got := spans.Load(); got != 2048-512 {
		t.Errorf("%d spans, want all that waited but the refused batch", got)
	}
	if strings.Count(log.String(), "not sent") != 1 || !strings.Contains(log.String(), "lost=2952") {
		t.Errorf("logged %s", log.String())
	}
}
