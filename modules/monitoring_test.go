package modules_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/etcdtest"
	"github.com/florete/florete/tests/program"
)

// exposed returns the metrics, with their labels, of a forwarder that exposes every metric.
func exposed(t *testing.T) map[string][]string {
	t.Helper()
	service, caller := kit.ID("service/wiki"), kit.ID("user/alice")
	var counters telemetry.Counters
	conn := counters.Begin(telemetry.In, service, "http", caller)
	conn.Opened(time.Millisecond)
	counters.Refuse(telemetry.Refusal{Direction: telemetry.In, Reason: "busy", Target: service.String(), Peer: caller.String(), Known: true})
	now := time.Now()
	ln, err := status.ListenMetrics("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go status.NewMetricsPage(func() status.Report {
		return status.Report{
			Host: "ursula", State: "running", Manifest: &status.Version{Serial: 1}, Identities: []status.Identity{{ID: service, Expires: &now}},
			Fallbacks:       []hostreport.Fallback{{Forwarder: document.Addresses{"192.0.2.1:4610"}, Since: unixtime.Of(now)}},
			Uplinks:         []status.Uplink{{Relay: kit.ID("vertex/gate"), Since: now}},
			PeerConnections: []usage.Row{{Direction: telemetry.In, Target: service, Caller: caller, Transport: document.OverQUIC}},
			Handshakes:      []usage.Handshakes{{Direction: telemetry.In, Target: service, Caller: caller, Transport: document.OverQUIC, Count: 1}},
			Summary:         counters.Summary(),
		}
	}).Serve(t.Context(), ln)
	res, err := http.Get("http://" + ln.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	all := map[string][]string{}
	families(t, res.Body, all)
	return all
}

// families adds metrics, with their labels.
func families(t *testing.T, text io.Reader, all map[string][]string) {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	found, err := parser.TextToMetricFamilies(text)
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range found {
		var labels []string
		for _, l := range f.Metric[0].Label {
			labels = append(labels, l.GetName())
		}
		all[name] = labels
		if f.Metric[0].Histogram != nil {
			all[name+"_bucket"] = append(labels, "le")
		}
	}
}

// ofStore adds the metrics of a member of the store that has written something.
func ofStore(t *testing.T, all map[string][]string) {
	t.Helper()
	c := etcdtest.Start(t, 1)
	if _, err := c.Open(t).Commit(t.Context(), store.Txn{Then: []store.Op{store.Put("a", nil)}}); err != nil {
		t.Fatal(err)
	}
	res, err := http.Get(c.Endpoints()[0] + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	families(t, res.Body, all)
}

// TestMonitoring checks that the alerts and the dashboard parse, and read only metrics that a
// forwarder or a member of the store exposes.
func TestMonitoring(t *testing.T) {
	promql, err := program.Tool("tools/promql", "promql")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(promql, "monitoring/alerts.yaml", "monitoring/dashboard.json")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	has := exposed(t)
	ofStore(t, has)
	has["up"] = nil
	used := map[string]bool{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var r struct {
			File, Where, Metric string
			Labels              []string
		}
		if err := d.Decode(&r); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		labels, known := has[r.Metric]
		if !known {
			t.Errorf("%s: %s: nobody exposes %s", r.File, r.Where, r.Metric)
		}
		used[r.Metric] = true
		for _, l := range r.Labels {
			if l != "instance" && l != "job" && !slices.Contains(labels, l) {
				t.Errorf("%s: %s: %s has no label %s", r.File, r.Where, r.Metric, l)
			}
		}
	}
	if len(used) < 15 {
		t.Errorf("only %d metrics are used: %v", len(used), used)
	}
}
