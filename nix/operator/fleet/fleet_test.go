package fleet

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/providers/join"
	"github.com/florete/florete/tests/kit"
)

var now = time.Unix(1_784_011_430, 0)

// manifest returns a manifest of host ursula, of which nothing but the envelope matters.
func manifest(t *testing.T, serial int64, role string) compile.Raw {
	t.Helper()
	body := fmt.Sprintf("{%q}", role)
	b, err := json.Marshal(document.Envelope{
		Schema: document.EnvelopeSchema, Format: document.Format{Major: 1, Minor: 1}, Cluster: "demo", Host: "ursula", Kind: document.DocManifest,
		Digest: document.Digest([]byte(body)), Serial: serial,
	})
	if err != nil {
		t.Fatal(err)
	}
	return compile.Raw{Body: body, Envelope: string(b)}
}

// well returns a report of a host that runs a document and has no problem.
func well(t *testing.T, raw compile.Raw) hostreport.Report {
	t.Helper()
	e, err := raw.Head()
	if err != nil {
		t.Fatal(err)
	}
	return hostreport.Report{
		Sent: unixtime.Of(now), Format: document.Format{Major: 1, Minor: 1},
		Documents: []document.Reported{{Kind: document.DocManifest, Serial: e.Serial, Digest: e.Digest}},
		Needs:     []hostreport.Need{{ID: "cert-node", State: hostdir.NeedFulfilled, Fulfilled: unixtime.Of(now.Add(-4 * time.Hour)), Expires: unixtime.Of(now.Add(20 * time.Hour))}},
		Forwarder: &hostreport.Forwarder{State: hostreport.Running}, Units: []hostreport.Unit{{Name: "florete-activate.service", Active: "active", Text: "1/1 needs fulfilled"}},
		Facts: hostreport.Facts{Capabilities: []string{"kvm"}},
	}
}

func TestNotes(t *testing.T) {
	current := manifest(t, 7, "node")
	for name, c := range map[string]struct {
		change func(r *hostreport.Report, received *time.Time)
		want   string // "kind: text", empty where all is well
	}{
		"well":    {func(*hostreport.Report, *time.Time) {}, ""},
		"silent":  {func(_ *hostreport.Report, at *time.Time) { *at = now.Add(-20 * time.Minute) }, "silent: last reported 20m ago"},
		"overdue": {func(_ *hostreport.Report, at *time.Time) { *at = now.Add(-9 * time.Minute) }, "silent: last reported 9m ago"},
		"full disk": {func(r *hostreport.Report, _ *time.Time) {
			r.Facts.Disk = hostreport.Capacity{Total: 1 << 30, Free: 64 << 10}
		}, "disk: its disk is full, 64 KiB are free: flor doctor there"},
		"ended since": {func(r *hostreport.Report, at *time.Time) {
			*at = now.Add(-5 * time.Minute)
			r.Sent, r.Needs[0].Expires = unixtime.Of(*at), unixtime.Of(now.Add(-time.Minute))
		}, "expired: need cert-node expired at "},
		"ended while it waits": {func(r *hostreport.Report, _ *time.Time) {
			r.Needs[0].State, r.Needs[0].Expires = hostdir.NeedWaiting, unixtime.Of(now.Add(-time.Minute))
		}, "need: need cert-node is waiting, and what it has expired at "},
		"a unit that is not there": {func(r *hostreport.Report, _ *time.Time) {
			r.Needs[0].Error = &hostdir.NeedError{Code: "notify", Message: "outlne.service: restart: Unit outlne.service not found."}
		}, "need: need cert-node is fulfilled: notify: outlne.service: restart: Unit outlne.service not found."},
		"old list": {func(r *hostreport.Report, _ *time.Time) {
			r.Revocations = &trust.ReportedRevocations{Number: 4, NextUpdate: unixtime.Of(now.Add(-2 * time.Hour))}
		}, "revocations: a newer revocation list than 4 has been due for 2h0m0s: florctl revoke --renew"},
		"list about to end": {func(r *hostreport.Report, _ *time.Time) {
			r.Revocations = &trust.ReportedRevocations{Number: 4, Signed: unixtime.Of(now.Add(-28 * 24 * time.Hour)), NextUpdate: unixtime.Of(now.Add(48 * time.Hour))}
		}, "revocations: a newer revocation list than 4 is due in 48h0m0s: florctl publish, or florctl revoke --renew"},
		"withheld": {func(r *hostreport.Report, _ *time.Time) {
			r.Withheld = &trust.Withheld{Kind: document.DocManifest, Serial: 7, List: 4, Named: 9, Since: unixtime.Unix(1e9)}
		}, "withheld: its manifest has serial 7, and revocation list 4 names serial 9, which was due by 2001-09-09T01:46:40Z: see which version its config provider serves, florctl versions, and flor doctor there"},
		"list": {func(r *hostreport.Report, _ *time.Time) {
			r.Revocations = &trust.ReportedRevocations{Number: 4, NextUpdate: unixtime.Of(now)}
		}, ""},
		"clock":        {func(r *hostreport.Report, _ *time.Time) { r.Sent = unixtime.Of(now.Add(time.Hour)) }, "clock: its clock is off by 1h0m0s"},
		"no document":  {func(r *hostreport.Report, _ *time.Time) { r.Documents = nil }, "behind: has no manifest yet"},
		"behind":       {func(r *hostreport.Report, _ *time.Time) { *r = with(r, manifest(t, 6, "old"), t) }, "behind: its manifest is of serial 6, the flake's is 7"},
		"ahead":        {func(r *hostreport.Report, _ *time.Time) { *r = with(r, manifest(t, 8, "new"), t) }, "ahead: its manifest is of serial 8, the flake's is 7"},
		"same content": {func(r *hostreport.Report, _ *time.Time) { *r = with(r, manifest(t, 6, "node"), t) }, ""},
		"old programs": {func(r *hostreport.Report, _ *time.Time) { r.Format = document.Format{Major: 1} }, "format: its programs understand formats up to 1.0, its manifest needs 1.1: upgrade them"},
		"closure":      {func(r *hostreport.Report, _ *time.Time) { r.Closure = &hostdir.NeedError{Message: "closure: newer"} }, "format: closure: newer"},
		"pending": {func(r *hostreport.Report, _ *time.Time) {
			r.Pending = &hostdir.Change{ID: "k3f9", Deadline: unixtime.Of(now)}
		}, "pending: change k3f9 goes back at 2026-07-14T06:43:50Z unless it is confirmed"},
		"undone": {func(r *hostreport.Report, _ *time.Time) {
			r.Undone = &hostdir.Change{ID: "k3f9", Documents: r.Documents}
		}, "undone: change k3f9, manifest "},
		"need": {func(r *hostreport.Report, _ *time.Time) {
			r.Needs[0].State, r.Needs[0].Error = hostdir.NeedDenied, &hostdir.NeedError{Code: "not-granted", Message: "no grant"}
		}, "need: need cert-node is denied: not-granted: no grant"},
		"blocked": {func(r *hostreport.Report, _ *time.Time) { r.Needs[0].State = hostdir.NeedBlocked }, "need: need cert-node is blocked"},
		"expires": {func(r *hostreport.Report, _ *time.Time) {
			r.Needs[0].Expires = unixtime.Of(now.Add(10 * time.Minute))
		}, "expires: need cert-node expires in 10m0s"},
		"short-lived": {func(r *hostreport.Report, _ *time.Time) {
			r.Needs[0].Fulfilled, r.Needs[0].Expires = unixtime.Of(now.Add(-10*time.Second)), unixtime.Of(now.Add(10*time.Second))
		}, ""},
		"expired": {func(r *hostreport.Report, _ *time.Time) {
			r.Needs[0].Expires = unixtime.Of(now.Add(-time.Minute))
		}, "expired: need cert-node expired at "},
		"no forwarder":                    {func(r *hostreport.Report, _ *time.Time) { r.Forwarder = nil }, "forwarder: its forwarder does not answer"},
		"a forwarder without an identity": {func(r *hostreport.Report, _ *time.Time) { r.Forwarder.State = "waiting" }, "forwarder: its forwarder is waiting"},
		"over TCP": {func(r *hostreport.Report, _ *time.Time) {
			r.Forwarder.Fallbacks = []hostreport.Fallback{{Forwarder: document.Addresses{"192.0.2.1:4610"}, Since: unixtime.Unix(1e9), Reason: "no answer over UDP"}}
		}, "transport: reaches the forwarder at 192.0.2.1:4610 over TCP since 2001-09-09T01:46:40Z: no answer over UDP: flor doctor there"},
		"ending": {func(r *hostreport.Report, _ *time.Time) {
			r.Documents = append(r.Documents, document.Reported{Kind: document.DocPolicy})
			r.Forwarder.Ending = []trust.EndingCertificate{{Part: "issuing", Name: "demo", Ends: unixtime.Unix(1e9)}}
		}, `ending: the issuing certificate "demo" ends on 2001-09-09: flor doctor there`},
		"ending, for others to see to": {func(r *hostreport.Report, _ *time.Time) {
			r.Forwarder.Ending = []trust.EndingCertificate{{Part: "issuing", Name: "demo"}}
		}, ""},
		"problem": {func(r *hostreport.Report, _ *time.Time) { r.Forwarder.Problems = []string{"port taken"} }, "forwarder: its forwarder: port taken"},
		"unit": {func(r *hostreport.Report, _ *time.Time) {
			r.Units[0] = hostreport.Unit{Name: "x.service", Active: "failed", Sub: "failed"}
		}, "unit: x.service is failed (failed)"},
		"capability": {func(r *hostreport.Report, _ *time.Time) { r.Facts.Capabilities = nil }, "capability: the flake declares capability kvm, which it does not report"},
	} {
		t.Run(name, func(t *testing.T) {
			r, at := well(t, current), now
			c.change(&r, &at)
			raw, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			s := compile.Snapshot{
				Topology:  compile.Topology{Hosts: map[string]compile.Host{"ursula": {Capabilities: []string{"ingress", "kvm"}}}},
				Documents: map[string]map[string]compile.Raw{"ursula": {document.DocManifest: current}},
			}
			all, err := Join(s, Seen{Reports: map[string]hostreport.Kept{"ursula": {Received: unixtime.Of(at), Report: raw}}}, now)
			if err != nil || len(all) != 1 {
				t.Fatal(all, err)
			}
			var notes []string
			for _, n := range all[0].Notes {
				notes = append(notes, n.Kind+": "+n.Text)
			}
			got := strings.Join(notes, "\n")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) || strings.Contains(got, "\n") && !strings.HasPrefix(c.want, "silent") {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// with returns a report of a host that runs another document.
func with(r *hostreport.Report, raw compile.Raw, t *testing.T) hostreport.Report {
	other := *r
	other.Documents = well(t, raw).Documents
	return other
}

func TestNeverReported(t *testing.T) {
	all, err := Join(compile.Snapshot{Topology: compile.Topology{Hosts: map[string]compile.Host{"b": {}, "a": {}}}}, Seen{}, now)
	if err != nil || len(all) != 2 || all[0].Name != "a" || all[0].Notes[0].Kind != "silent" {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestOutsideReports checks the notes about a host whose join waits for approval and about a config
// provider that does not run, of which no report can tell.
func TestOutsideReports(t *testing.T) {
	key, err := ssh.NewPublicKey(kit.NewKey().Public())
	if err != nil {
		t.Fatal(err)
	}
	request := join.Request{Host: "elm", Device: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))}
	problem, _ := hostreport.Unit{Name: "florete-provider-config.service", Active: "inactive", Sub: "dead"}.Problem()
	s := compile.Snapshot{Topology: compile.Topology{Hosts: map[string]compile.Host{"elm": {}, "forge": {}}}}
	all, err := Join(s, Seen{Waiting: map[string]join.Request{"elm": request}, Stopped: map[string]hostreport.Problem{"forge": problem}}, now)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []Note{
		{"join", "device " + ssh.FingerprintSHA256(key) + " waits for approval as this host: florctl join approve elm"},
		{"provider", "florete-provider-config.service is inactive (dead), and hosts cannot report to it: flor doctor there"},
	} {
		if len(all[i].Notes) != 2 || all[i].Notes[0] != want || all[i].Notes[1].Kind != "silent" {
			t.Errorf("got %q, want %q first", all[i].Notes, want)
		}
	}
}

// TestUnreadable checks that an invalid report of one host does not hide the others.
func TestUnreadable(t *testing.T) {
	s := compile.Snapshot{Topology: compile.Topology{Hosts: map[string]compile.Host{"a": {}, "b": {}}}}
	all, err := Join(s, Seen{Reports: map[string]hostreport.Kept{"a": {Received: unixtime.Of(now), Report: json.RawMessage(`{"needs": 3}`)}}}, now)
	if err != nil || len(all) != 2 || len(all[0].Notes) != 1 || all[0].Notes[0].Kind != "report" || all[1].Notes[0].Kind != "silent" {
		t.Fatalf("%+v, %v", all, err)
	}
	var out strings.Builder
	if err := Text(&out, all, now); err != nil || !strings.Contains(out.String(), "\na     0s\n  ! its report cannot be read: ") {
		t.Errorf("%s, %v", out.String(), err)
	}
}

func TestText(t *testing.T) {
	r := well(t, manifest(t, 7, "node"))
	r.Release, r.Facts.System, r.Forwarder.Connections = "0.1.0", "Debian \x1b[2J12", 3
	r.Facts.DeviceKey = hostdir.InTPM
	r.Documents[0].Serial = 7
	hosts := []Host{
		{Name: "laptop", Notes: []Note{{"silent", "has never reported"}}},
		{Name: "ursula", Received: unixtime.Of(now.Add(-90 * time.Second)), Report: &r, Notes: []Note{{"need", "a \x1b"}, {"a", "b"}, {"c", "d"}, {"e", "f"}, {"g", "h"}}},
	}
	var out strings.Builder
	if err := Text(&out, hosts, now); err != nil {
		t.Fatal(err)
	}
	const want = `HOST    SEEN   RELEASE  SERIAL  NEEDS  ENDS  CONNECTIONS  SYSTEM
laptop  never
  ! has never reported
ursula  1m     0.1.0    7       1/1    20h   3            Debian ·[2J12, key in TPM
  ! a ·
  ! b
  ! d
  and 2 more: --json has them
0 of 2 hosts are well
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
