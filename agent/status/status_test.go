package status_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

var now = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// full returns a report in which every field has a value, to test that all of them are printed.
func full() status.Report {
	expires := now.Add(3 * time.Hour)
	r := status.Report{
		Host: "laptop", Cluster: "demo", State: "running", Connections: 1,
		Manifest:   &status.Version{Serial: 7, Digest: "sha256-x", Rev: "8eeec93", Signing: "signed by a-1, b-1 (2 keys must sign)\x1b"},
		Problems:   []string{"caller user/carol: no such account"},
		DeviceKey:  hostdir.InTPM,
		Unconfined: "landlock: not in force\x1b",
		Pending:    &hostdir.Change{ID: "k3f9", Documents: []document.Reported{{Kind: "manifest", Serial: 7}}, Deadline: unixtime.Unix(now.Add(4 * time.Minute).Unix())},
		Undone:     &hostdir.Change{ID: "z2a7", Documents: []document.Reported{{Kind: "manifest", Serial: 6}, {Kind: "policy", Serial: 6}}, Deadline: unixtime.Unix(now.Add(-time.Hour).Unix())},
		Ending:     []trust.EndingCertificate{{Part: "issuing", Name: "demo.flor issuing", Ends: unixtime.Unix(now.Add(90 * 24 * time.Hour).Unix())}},
		Fallbacks:  []hostreport.Fallback{{Forwarder: document.Addresses{"192.0.2.1:4610"}, Since: unixtime.Unix(now.Add(-time.Minute).Unix()), Reason: "no answer over UDP within 1s", Retry: unixtime.Unix(now.Add(9 * time.Second).Unix())}},
		Identities: []status.Identity{{ID: agenttest.Alice, Expires: &expires}, {ID: agenttest.Outline, Expires: &expires, Workload: true}, {ID: agenttest.Bob}},
		Needs: []status.Need{
			{ID: "cert-user-alice", Kind: "cert", NeedState: hostdir.NeedState{State: "fulfilled", Attempts: 1, Next: unixtime.Unix(now.Add(time.Hour).Unix()), Fulfilled: unixtime.Unix(now.Unix())}},
			{ID: "config-documents", Kind: "config"},
		},
		Published: []status.Published{{ID: agenttest.Outline, Upstream: "127.0.0.1:4654", Allow: []spiffe.ID{agenttest.Alice, agenttest.Bob}}},
		Reachable: []status.Reachable{
			{ID: kit.ID("service/dns"), Protocol: document.UDP, Name: "dns.demo.flor.rete", Listen: "127.64.0.1:53", Callers: []spiffe.ID{agenttest.Alice}, Endpoints: []document.Addresses{{"192.0.2.1:4610"}, {"10.0.0.5:4610", "[2001:db8::5]:4610"}}, Via: []document.Via{{By: []string{"gate", "gate2"}}}},
		},
	}
	r.Entries = []status.Entry{
		{ID: agenttest.Outline, Port: "smtp", Listen: ":25"},
		{ID: kit.ID("service/dns"), Protocol: document.UDP, Listen: "192.0.2.1:53", From: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Outside: "scanner"},
		{ID: agenttest.Outline, Listen: ":5671", ServerNames: []string{"mq.example.org", "queue.example.org"}},
	}
	r.Uplinks = []status.Uplink{
		{Relay: kit.ID("vertex/gate"), Transport: document.OverQUIC, Since: now.Add(-time.Hour)},
		{Relay: kit.ID("vertex/far"), Since: now.Add(-time.Minute), Error: "no route to host"},
	}
	r.RelayedTo = []status.Path{
		{Target: kit.ID("service/dns"), Caller: agenttest.Alice, Path: "by gate, gate2", Since: now.Add(-time.Minute), Why: "two relays"},
		{Target: agenttest.Outline, Caller: agenttest.Alice, Path: "direct (punched)", Since: now.Add(-time.Hour)},
	}
	r.PeerConnections = []usage.Row{
		{Direction: telemetry.In, Target: agenttest.Outline, Caller: agenttest.Bob, Transport: document.OverQUIC, Remote: "192.0.2.7:4610", Streams: 2, Allowed: 4096, Opened: 70},
		{Direction: telemetry.Out, Target: agenttest.Outline, Caller: agenttest.Alice, Transport: document.OverTCP, Remote: "192.0.2.1:4610", Streams: 4096, Allowed: 4096, Opened: 5000, Full: true},
	}
	r.Summary = telemetry.Summary{
		Paths:          []telemetry.Path{{Direction: telemetry.Out, Target: agenttest.Outline, Caller: agenttest.Alice, Live: 1, Total: 3, Sent: 900, Received: 5 << 20, Dropped: 2}},
		Refusals:       map[string]int64{"denied": 2, "bad-name": 1},
		RecentRefusals: []telemetry.Refusal{{Time: now.Add(-12 * time.Second), Direction: telemetry.Out, Reason: "denied", Target: "t", Peer: "p", Detail: "d\x1b[2J\n"}},
	}
	return r
}

const table = `laptop: running, 1 connections
cluster demo, manifest 7 8eeec93
manifest signed by a-1, b-1 (2 keys must sign)·
device key: in the TPM
pending: change k3f9, manifest 7 goes back in 4m0s, unless from a new login: flor sync --confirm k3f9
undone: change z2a7, manifest 6, policy 6 went back 1h0m0s ago, for nobody confirmed it: publish what is right
ending: the issuing certificate demo.flor issuing ends on 2026-10-30: flor doctor
over TCP: 192.0.2.1:4610, 1m0s ago: no answer over UDP within 1s; QUIC is tried in 9s: flor doctor
unconfined: landlock: not in force·
problem: caller user/carol: no such account

IDENTITY         EXPIRES
user/alice       in 3h0m0s
service/outline  in 3h0m0s, by the Workload API too
user/bob         not delivered

NEED              KIND    STATE      ATTEMPTS  NEXT       ERROR
cert-user-alice   cert    fulfilled  1         in 1h0m0s  
config-documents  config  unknown    0                    

PUBLISHED        UPSTREAM        SERVING  ALLOWED
service/outline  127.0.0.1:4654  false    user/alice user/bob

REACHABLE           LISTENER           CALLERS     ENDPOINTS
dns.demo.flor.rete  127.64.0.1:53/udp  user/alice  192.0.2.1:4610 10.0.0.5:4610|[2001:db8::5]:4610 by:gate,gate2

PUBLIC PORT       LEADS TO              FROM                 AS
:25               service/outline:smtp  anyone               
192.0.2.1:53/udp  service/dns           scanner: 10.0.0.0/8  
:5671             service/outline       anyone               mq.example.org queue.example.org

UPLINK TO    OVER           SINCE       ERROR
vertex/gate  quic           1h0m0s ago  
vertex/far   not connected  1m0s ago    no route to host

PATH TO          OF          PATH              SINCE       WHY
service/dns      user/alice  by gate, gate2    1m0s ago    two relays
service/outline  user/alice  direct (punched)  1h0m0s ago  

     CONNECTION TO    OF          FORWARDER       OVER  STREAMS                           EVER
in   service/outline  user/bob    192.0.2.7:4610  quic  2 of 4096                         70
out  service/outline  user/alice  192.0.2.1:4610  tcp   4096 of 4096, no more are let in  5000

     TARGET           CALLER      LIVE  TOTAL  SENT   RECEIVED  DROPPED
out  service/outline  user/alice  1     3      900 B  5.0 MiB   2

REFUSED   TIMES
bad-name  1
denied    2

WHEN          REASON  TARGET  PEER  DETAIL
12s ago  out  denied  t       p     d·[2J·
`

func TestPrint(t *testing.T) {
	var out bytes.Buffer
	if err := status.Print(&out, full(), now); err != nil {
		t.Fatal(err)
	}
	if out.String() != table {
		t.Errorf("got\n%s\nwant\n%s", out.String(), table)
	}
}

func TestPrintOfAnAgentThatWaits(t *testing.T) {
	var out bytes.Buffer
	status.Print(&out, status.Report{State: "waiting", Problems: []string{"no manifest"}}, now)
	if want := "no manifest: waiting, 0 connections\nproblem: no manifest\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// TestPrintAge checks that the age of the documents is printed if their serial is the time of a
// change.
func TestPrintAge(t *testing.T) {
	for want, v := range map[string]status.Version{
		"cluster demo, manifest 1785326400 8eeec93, of 72h0m0s ago\n": {Serial: now.Add(-72 * time.Hour).Unix(), Rev: "8eeec93"},
		"cluster demo, manifest 7 8eeec93\n":                          {Serial: 7, Rev: "8eeec93"},
		"cluster demo, manifest 7\n":                                  {Serial: 7},
	} {
		var out bytes.Buffer
		status.Print(&out, status.Report{Cluster: "demo", Manifest: &v}, now)
		if !strings.Contains(out.String(), want) {
			t.Errorf("got %q, want %q", out.String(), want)
		}
	}
}

// serve answers status requests with the report r until the test ends.
func serve(t *testing.T, socket string, r status.Report) {
	t.Helper()
	ln, err := status.Listen(socket, 0o660)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		status.Serve(ctx, ln, func() status.Report { return r })
	}()
	t.Cleanup(func() { cancel(); <-done })
}

func TestFetchGivesWhatWasServed(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "socket")
	serve(t, socket, full())
	got, raw, err := status.Fetch(t.Context(), socket)
	if err != nil || !reflect.DeepEqual(got, full()) {
		t.Errorf("got %+v, %v", got, err)
	}
	var again status.Report
	if err := json.Unmarshal(raw, &again); err != nil || !reflect.DeepEqual(again, got) {
		t.Errorf("raw answer %s, %v", raw, err)
	}
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("socket: %v, %v", info.Mode(), err)
	}
}

// TestListenReplacesADeadSocket checks that Listen replaces the socket of an agent that was killed.
func TestListenReplacesADeadSocket(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "socket")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket})
	if err != nil {
		t.Fatal(err)
	}
	ln.SetUnlinkOnClose(false)
	ln.Close()
	serve(t, socket, status.Report{Host: "laptop"})
	if r, _, err := status.Fetch(t.Context(), socket); err != nil || r.Host != "laptop" {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	serve(t, filepath.Join(dir, "socket"), status.Report{})
	for socket, want := range map[string]string{
		filepath.Join(dir, "socket"):     "another agent serves it",
		filepath.Join(dir, "no", "such"): "no such file or directory",
	} {
		if _, err := status.Listen(socket, 0o660); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("listen: error %v, want %q", err, want)
		}
	}
	if _, _, err := status.Fetch(t.Context(), filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "is flor agent run running?") {
		t.Errorf("fetch: error %v", err)
	}
}
