package forward_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/florete/florete/agent/forward"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// span is a span as a collector reads it.
type span struct {
	TraceID, SpanID, ParentSpanID, Name string
	Kind                                int
	Start                               string `json:"startTimeUnixNano"`
	End                                 string `json:"endTimeUnixNano"`
	Status                              struct {
		Code    int
		Message string
	}
	Attributes []struct {
		Key   string
		Value struct{ StringValue string }
	}
}

// collector starts a collector of traces. It returns the pairs of spans of one trace, the caller's
// first.
func collector(t *testing.T) (url string, pairs func() [][2]span) {
	t.Helper()
	var mu sync.Mutex
	got := map[string][2]span{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			ResourceSpans []struct{ ScopeSpans []struct{ Spans []span } }
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s, %v", r.URL, err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, res := range body.ResourceSpans {
			for _, scope := range res.ScopeSpans {
				for _, x := range scope.Spans {
					pair := got[x.TraceID]
					pair[map[string]int{"open service/outline": 0, "connect service/outline": 1}[x.Name]] = x
					got[x.TraceID] = pair
				}
			}
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, func() (whole [][2]span) {
		mu.Lock()
		defer mu.Unlock()
		for _, pair := range got {
			if pair[0].TraceID != "" && pair[1].TraceID != "" {
				whole = append(whole, pair)
			}
		}
		return whole
	}
}

// TestTraces checks, over both transports, that the publishing side's span is a child of the
// caller's, and within its time.
func TestTraces(t *testing.T) {
	for _, over := range []document.Transport{document.OverQUIC, document.OverTCP} {
		t.Run(string(over), func(t *testing.T) {
			url, pairs := collector(t)
			c := newCluster(t, agenttest.Echo(t))
			c.Reach.Reach[0].Transport = over
			c.AcceptLaptop()
			for _, h := range []*agenttest.Host{c.Ursula, c.Laptop} {
				runWith(t, forward.Config{Layout: h.Layout, Socket: h.Socket(), Poll: time.Hour, Traces: url, OneTraceIn: 1})
				kit.Eventually(t, h.Name+" to run", func() bool { return report(t, h).State == "running" })
			}
			c.running = true
			for range 2 { // the second stream of one connection
				conn := dial(t, c.Local)
				if err := agenttest.Ping(conn); err != nil {
					t.Fatal(err)
				}
				conn.Close()
			}
			kit.Eventually(t, "both spans of two traces", func() bool { return len(pairs()) == 2 })
			pair := pairs()[0]
			caller, publisher := pair[0], pair[1]
			if len(caller.TraceID) != 32 || len(caller.SpanID) != 16 || caller.ParentSpanID != "" || caller.Kind != 3 || caller.Status.Code != 1 {
				t.Errorf("caller: %+v", caller)
			}
			if publisher.ParentSpanID != caller.SpanID || publisher.SpanID == caller.SpanID || publisher.Kind != 2 || publisher.Status.Code != 1 {
				t.Errorf("publisher: %+v", publisher)
			}
			if nanos(t, caller.Start) > nanos(t, publisher.Start) || nanos(t, publisher.Start) > nanos(t, publisher.End) {
				t.Errorf("caller %+v, publisher %+v", caller, publisher)
			}
			has := map[string]string{}
			for _, a := range publisher.Attributes {
				has[a.Key] = a.Value.StringValue
			}
			if has["florete.caller"] != alice.String() || has["florete.service"] != outline.String() || has["florete.transport"] != string(over) || !strings.HasPrefix(has["network.peer.address"], "127.") {
				t.Errorf("attributes %v", has)
			}

			c.Publish.Publish[0].Upstream = agenttest.RefusingTCP(t)
			c.acceptUrsula(t)
			_, _ = get(c.Local)
			kit.Eventually(t, "spans of what was refused", func() bool {
				return slices.ContainsFunc(pairs(), func(p [2]span) bool {
					return p[0].Status.Message == "upstream-refused" && p[1].Status.Message == "upstream-refused"
				})
			})
		})
	}
}

func nanos(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
