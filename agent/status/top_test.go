package status_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/sessions"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

var topAt = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func topReports() (before, after status.Report) {
	path := telemetry.Path{Direction: telemetry.In, Target: agenttest.Outline, Caller: agenttest.Alice, Live: 2, Total: 10, Sent: 1 << 20, Received: 100}
	before.Paths = []telemetry.Path{path}
	before.Refused = []telemetry.Refused{{Direction: telemetry.In, Reason: "busy", Target: agenttest.Outline.String(), Caller: agenttest.Alice.String(), Count: 5}}
	path.Live, path.Total, path.Sent, path.Received = 3, 14, 5<<20, 120
	after.Host, after.State = "ursula", "running"
	after.Paths = []telemetry.Path{path}
	after.Refused = []telemetry.Refused{
		{Direction: telemetry.In, Reason: "busy", Target: agenttest.Outline.String(), Caller: agenttest.Alice.String(), Count: 9},
		{Direction: telemetry.In, Reason: "unknown-name", Count: 1},
	}
	row := usage.Row{Direction: telemetry.In, Target: agenttest.Outline, Caller: agenttest.Alice, Transport: document.OverQUIC}
	over := row
	over.Transport = document.OverTCP
	after.PeerConnections = []usage.Row{row, row, over}
	return before, after
}

func TestBetween(t *testing.T) {
	before, after := topReports()
	want := []status.TopRow{
		{Direction: telemetry.In, Target: "service/outline", Caller: "user/alice", Connections: 3, Opens: 2, In: 10, Out: 2 << 20, Refusals: 9, Refused: 2, Transport: "quic tcp"},
		{Direction: telemetry.In, Refusals: 1, Refused: .5},
	}
	if v := status.Between(before, after, 2*time.Second, topAt); !reflect.DeepEqual(v.Rows, want) {
		t.Errorf("got %+v", v.Rows)
	}
	// The agent was started again.
	if v := status.Between(after, before, 2*time.Second, topAt); v.Rows[0].Opens != 5 {
		t.Errorf("got %+v", v.Rows)
	}
}

// TestPortsApart checks that each port of a service has its own row. Connections between forwarders
// are counted over all ports.
func TestPortsApart(t *testing.T) {
	before, after := topReports()
	port := after.Paths[0]
	port.Port, port.Live = "metrics", 1
	after.Paths = append(after.Paths, port)
	var out bytes.Buffer
	if err := status.PrintTop(&out, status.Between(before, after, 2*time.Second, topAt)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"in  service/outline:metrics  user/alice  1 ", "in  service/outline          user/alice  3 "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got\n%s\nwithout %q", out.String(), want)
		}
	}
	if n := strings.Count(out.String(), "quic tcp"); n != 2 {
		t.Errorf("%d rows have what they go over, want 2", n)
	}
}

const topTable = `ursula: running, 12:00:00

    SERVICE          PRINCIPAL   CONNS  OPENS/S  IN/S  OUT/S    REFUSED  REFUSED/S  OVER
in  service/outline  user/alice  3      2.0      10 B  2.0 MiB  9        2.0        quic tcp
in  (others)         (others)    0      0.0      0 B   0 B      1        0.5        
`

func TestPrintTop(t *testing.T) {
	before, after := topReports()
	var out bytes.Buffer
	if err := status.PrintTop(&out, status.Between(before, after, 2*time.Second, topAt)); err != nil || out.String() != topTable {
		t.Errorf("%v, got\n%s\nwant\n%s", err, out.String(), topTable)
	}
}

// TestTopSessions checks that the open sessions follow the traffic.
func TestTopSessions(t *testing.T) {
	before, after := topReports()
	after.Sessions = []sessions.Session{{
		ID: "k7qj2m5xwa", Service: kit.ID("service/desk"), Protocol: document.RemoteRDP, Caller: kit.ID("user/alice"), From: "192.0.2.7:4610",
		Begun: topAt.Add(-90 * time.Second), Sent: 512, Received: 20480,
	}}
	var out bytes.Buffer
	const want = topTable + `
SESSION     SERVICE       PROTOCOL  WHO         FROM            OPEN   SENT  RECEIVED
k7qj2m5xwa  service/desk  rdp       user/alice  192.0.2.7:4610  1m30s  512   20480
`
	if err := status.PrintTop(&out, status.Between(before, after, 2*time.Second, topAt)); err != nil || out.String() != want {
		t.Errorf("%v, got\n%s\nwant\n%s", err, out.String(), want)
	}
}
