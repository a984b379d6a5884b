package rollout

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/unixtime"
)

// fleet contains the reports of a rollout's hosts, and the time.
type fleet struct {
	t       *testing.T
	now     time.Time
	state   State
	hosts   []Host
	reports map[string]hostreport.Kept
}

const next, former, bridge = 30, 10, 29

// newFleet is a rollout to the canary, then to a and b, then to c.
func newFleet(t *testing.T, bridged bool) *fleet {
	f := &fleet{t: t, now: time.Date(2026, 7, 15, 12, 0, 0, 0, time.UTC), reports: map[string]hostreport.Kept{}} // a Wednesday
	plan := document.Rollout{Waves: [][]string{{"canary"}, {"a", "b"}, {"c"}}, Healthy: 60, Within: 600}
	f.hosts = []Host{{Name: "canary", Wave: 1}, {Name: "a", Wave: 2}, {Name: "b", Wave: 2}, {Name: "c", Wave: 3}}
	for i, h := range f.hosts {
		f.hosts[i].Serial = next
		f.report(h.Name, former)
	}
	if bridged {
		f.hosts = append(f.hosts, Host{Name: "provider", Serial: bridge})
		f.report("provider", former)
	}
	f.state = New(next, former, plan, bridged, f.now)
	return f
}

// report records that a host is healthy with documents of a serial, with changes.
func (f *fleet) report(host string, serial int64, change ...func(*hostreport.Report)) {
	f.t.Helper()
	r := hostreport.Report{Format: document.NewestFormat,
		Documents: []document.Reported{{Kind: document.DocManifest, Serial: serial}, {Kind: document.DocPolicy, Serial: serial}},
		Needs:     []hostreport.Need{{ID: "cert-node", State: hostdir.NeedFulfilled}},
		Forwarder: &hostreport.Forwarder{State: "running"},
	}
	for _, c := range change {
		c(&r)
	}
	b, err := json.Marshal(r)
	if err != nil {
		f.t.Fatal(err)
	}
	f.reports[host] = hostreport.Kept{Received: unixtime.Of(f.now), Report: b}
}

// after lets time pass in steps of five seconds, in which all hosts report what they did, as
// the state goes through JSON.
func (f *fleet) after(d time.Duration, silent ...string) {
	f.t.Helper()
	for end := f.now.Add(d); f.now.Before(end); {
		f.now = f.now.Add(5 * time.Second)
		for host, r := range f.reports {
			if !slices.Contains(silent, host) {
				r.Received = unixtime.Of(f.now)
				f.reports[host] = r
			}
		}
		f.step()
	}
}

func (f *fleet) step() {
	f.t.Helper()
	before := f.state
	opened := maps.Clone(before.Opened)
	stepped := f.state.Step(f.now, f.hosts, func(host string) hostreport.Kept { return f.reports[host] })
	if !maps.Equal(opened, before.Opened) {
		f.t.Fatal("a step changed the state that it began with")
	}
	b, err := json.Marshal(stepped)
	if err == nil {
		f.state = State{}
		err = json.Unmarshal(b, &f.state)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) want(status Status, wave int, reason string) {
	f.t.Helper()
	if f.state.Status != status || f.state.Wave != wave || !strings.Contains(f.state.Reason, reason) {
		f.t.Fatalf("status %s, wave %d, %q, want %s, wave %d, %q", f.state.Status, f.state.Wave, f.state.Reason, status, wave, reason)
	}
}

func failed(r *hostreport.Report) {
	r.Units = []hostreport.Unit{{Name: "wiki.service", Active: "failed"}}
}

func waiting(r *hostreport.Report) { r.Needs[0].State = hostdir.NeedWaiting }
func denied(r *hostreport.Report)  { r.Needs[0].State = hostdir.NeedDenied }

func TestWaves(t *testing.T) {
	f := newFleet(t, false)
	f.want(Active, 1, "")
	f.after(5 * time.Second)
	f.want(Active, 1, "waits for hosts: canary: has not put serial 30 in force")
	f.report("canary", next)
	f.after(60 * time.Second)
	f.want(Active, 1, "all hosts reached are healthy since 2026-07-15T12:00:10Z")
	f.after(5 * time.Second)
	f.want(Active, 2, "")
	for _, h := range []string{"a", "b"} {
		if !f.state.Offers(2, "") || f.state.Offers(3, "") {
			t.Error("other waves than the first two are offered the version")
		}
		f.report(h, next)
	}
	f.after(70 * time.Second)
	f.want(Active, 3, "")
	f.report("c", next)
	f.after(70 * time.Second)
	f.want(Done, 3, "")
	f.report("c", next, failed)
	f.after(time.Hour)
	f.want(Done, 3, "") // nobody looks any more
}

// Provider hosts have policies for both versions before any host has the new one.
func TestBridge(t *testing.T) {
	f := newFleet(t, true)
	f.after(60 * time.Second)
	f.want(Active, 0, "provider: has not put serial 29 in force")
	if f.state.Offers(1, "") {
		t.Error("the canary is offered the version")
	}
	f.report("provider", bridge)
	f.after(5 * time.Second)
	f.want(Active, 1, "")
}

func TestStops(t *testing.T) {
	for name, c := range map[string]struct {
		before Problems
		change func(*hostreport.Report)
		after  time.Duration
		reason string // empty where it goes on
	}{
		"a unit that failed":                {change: failed, after: 5 * time.Second, reason: "canary: unit wiki.service does not run"},
		"a need that is denied":             {change: denied, after: 5 * time.Second, reason: "canary: need cert-node is not fulfilled"},
		"a need that waits":                 {change: waiting, after: 605 * time.Second, reason: "for 10m0s: canary: need cert-node is not fulfilled"},
		"a forwarder that does not run":     {change: func(r *hostreport.Report) { r.Forwarder = nil }, after: 605 * time.Second, reason: "forwarder"},
		"a forwarder with a problem":        {change: func(r *hostreport.Report) { r.Forwarder.Problems = []string{"x"} }, after: 605 * time.Second, reason: "forwarder"},
		"a host that does not put in force": {change: func(r *hostreport.Report) { r.Documents[0].Serial = former }, after: 605 * time.Second, reason: "has not put serial 30 in force"},
		"a host that went back": {change: func(r *hostreport.Report) {
			r.Documents[0].Serial = former
			r.Undone = &hostdir.Change{Documents: []document.Reported{{Kind: document.DocManifest, Serial: next}}}
		}, after: 5 * time.Second, reason: "canary: went back by itself"},
		"a host that has not confirmed it": {change: func(r *hostreport.Report) {
			r.Pending = &hostdir.Change{Documents: []document.Reported{{Kind: document.DocManifest, Serial: next}}}
		}, after: 605 * time.Second, reason: "has not confirmed serial 30"},
		"what was so before":                {before: Problems{"unit wiki.service does not run": true}, change: failed, after: 65 * time.Second},
		"what waited before and still does": {before: Problems{"need cert-node is not fulfilled": false}, change: waiting, after: 65 * time.Second},
		"what was denied and waits":         {before: Problems{"need cert-node is not fulfilled": true}, change: waiting, after: 65 * time.Second},
		"what waited and is denied":         {before: Problems{"need cert-node is not fulfilled": false}, change: denied, after: 5 * time.Second, reason: "canary: need cert-node"},
		"another problem than before":       {before: Problems{"need oidc-wiki is not fulfilled": true}, change: failed, after: 5 * time.Second, reason: "wiki.service"},
		"a host that was silent before":     {before: Problems{silent: false}, change: func(r *hostreport.Report) { r.Documents[0].Serial = former }, after: 65 * time.Second},
		"one that had no documents before": {before: Problems{hostreport.NoDocuments: false},
			change: func(r *hostreport.Report) { r.Documents[0].Serial = former }, after: 65 * time.Second},
		"one that was silent, and breaks": {before: Problems{silent: false}, change: failed, after: 5 * time.Second, reason: "wiki.service"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, false)
			f.hosts[0].Before = c.before
			f.report("canary", next, c.change)
			f.after(c.after)
			if c.reason == "" {
				f.want(Active, 2, "")
			} else {
				f.want(Stopped, 1, c.reason)
			}
		})
	}
}

// A host of an earlier wave is looked at as long as the rollout lasts.
func TestBreaksLater(t *testing.T) {
	f := newFleet(t, false)
	f.report("canary", next)
	f.after(65 * time.Second)
	f.want(Active, 2, "")
	f.report("canary", next, failed)
	f.after(5 * time.Second)
	f.want(Stopped, 2, "canary: unit wiki.service")
}

// A host that is unhealthy for a moment begins the time anew, and stops nothing.
func TestPasses(t *testing.T) {
	f := newFleet(t, false)
	for range 3 {
		f.report("canary", next)
		f.after(50 * time.Second)
		f.report("canary", next, waiting)
		f.after(500 * time.Second)
		f.want(Active, 1, "need cert-node")
	}
}

func TestFallsSilent(t *testing.T) {
	f := newFleet(t, false)
	f.hosts[1].Before = Problems{silent: false} // stays so
	f.report("canary", next)
	f.after(65 * time.Second)
	f.want(Active, 2, "")
	f.report("b", next)
	f.after(70 * time.Second)
	f.want(Active, 3, "")
	f.report("c", next, waiting)
	f.state.Within = 7200
	f.after(2*time.Hour-5*time.Second, "canary", "a")
	f.want(Active, 3, "waits for hosts: c: need cert-node is not fulfilled")
	f.report("c", next)
	f.after(10*time.Second, "canary", "a")
	f.want(Active, 3, "waits for hosts: canary: does not report")
	f.after(7200*time.Second, "canary", "a")
	f.want(Stopped, 3, "for 2h0m0s: canary: does not report")
}

func TestPause(t *testing.T) {
	f := newFleet(t, false)
	f.report("canary", next)
	f.after(30 * time.Second)
	f.state = f.state.Pause("by user/alice")
	f.report("canary", next, failed)
	f.after(time.Hour)
	f.want(Paused, 1, "by user/alice")
	if !f.state.Offers(1, "") || f.state.Offers(2, "") {
		t.Error("a pause changes what is offered")
	}
	f.report("canary", next)
	f.state = f.state.Resume(f.now)
	f.after(60 * time.Second)
	f.want(Active, 1, "")
	f.after(5 * time.Second)
	f.want(Active, 2, "")
	f.state = f.state.End(Aborted, "by user/alice", f.now)
	f.after(time.Hour)
	f.want(Aborted, 2, "by user/alice")
	if f.state.End(Stopped, "x", f.now).Status != Aborted {
		t.Error("what has ended ends again")
	}
}

// A group with a window is offered nothing before it, and the next wave waits for that.
func TestMaintenance(t *testing.T) {
	f := newFleet(t, false)
	plan := document.Rollout{Waves: [][]string{{"canary"}, {"a", "b"}, {"c"}}, Healthy: 60, Within: 600, Maintenance: []document.Maintenance{
		{Group: "eu", Window: document.MaintenanceWindow{Days: []string{"wed"}, Start: "14:00", Minutes: 60}, Hosts: []string{"b"}}}}
	f.state = New(next, former, plan, false, f.now)
	f.hosts[2].Group = "eu"
	f.report("canary", next)
	f.report("a", next)
	f.after(time.Hour)
	f.want(Active, 2, "waits for the maintenance windows of b")
	if f.state.Offers(2, "eu") || !f.state.Offers(2, "") {
		t.Error("not only b waits")
	}
	f.after(time.Hour)
	f.want(Active, 2, "b: has not put serial 30 in force")
	if !f.state.Offers(2, "eu") {
		t.Error("b is not offered the version in its window")
	}
	f.after(595 * time.Second)
	f.want(Active, 2, "")
	f.report("b", next)
	f.after(65 * time.Second)
	f.want(Active, 3, "")
	f.now = f.now.Add(24 * time.Hour)
	f.step()
	if !f.state.Offers(2, "eu") {
		t.Error("what b was offered is taken from it after the window")
	}
}
