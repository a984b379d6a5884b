package report_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/florete/florete/agent/report"
	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/agent/units"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/release"
	"github.com/florete/florete/tests/kit/agenttest"
)

// TestCollect checks that a report contains the documents, needs and units of a host, even if its
// forwarder does not run.
func TestCollect(t *testing.T) {
	c := agenttest.NewCluster(t, agenttest.RefusingTCP(t))
	collector := report.Collector{Config: report.Config{
		Layout: c.Laptop.Layout, Socket: c.Laptop.Socket(), Declared: t.TempDir(),
		Units: func(_ context.Context, names []string) (all []units.Unit, err error) {
			for _, n := range names {
				u := units.Unit{Name: n, Load: "loaded", Active: "active", Sub: "running"}
				switch n {
				case "florete-activate.service":
					u.Text = "2/3 needs fulfilled"
				case "florete-refresh.timer":
					u.Active, u.Sub = "failed", "failed"
				case "florete-hosts-file.service":
					u.Load, u.Active = "not-found", "inactive"
				}
				all = append(all, u)
			}
			return all, nil
		},
	}}
	change := `{"id":"k3f9","documents":[{"kind":"manifest","serial":4000000000,"digest":"","rev":""}],"before":[],"deadline":1784011430}`
	for _, path := range []string{c.Laptop.Layout.ChangeFile(), c.Laptop.Layout.UndoneFile()} {
		if err := os.WriteFile(path, []byte(change), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := collector.Collect(t.Context())
	if r.Pending == nil || r.Pending.ID != "k3f9" || r.Undone == nil || r.Undone.Documents[0].Serial != 4000000000 {
		t.Errorf("pending %v, undone %v", r.Pending, r.Undone)
	}
	m, err := c.Laptop.Layout.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	e := m.Envelope
	if want := []document.Reported{{Kind: "manifest", Serial: e.Serial, Digest: e.Digest, Rev: e.Rev}}; !slices.Equal(r.Documents, want) {
		t.Errorf("documents %+v, want %+v", r.Documents, want)
	}
	if len(r.Needs) != 3 || r.Needs[0].State != hostdir.NeedWaiting || r.Forwarder != nil || r.Closure != nil {
		t.Errorf("%+v", r)
	}
	if want := []hostreport.Unit{
		{Name: "florete-activate.service", Active: "active", Sub: "running", Text: "2/3 needs fulfilled"},
		{Name: "florete-refresh.timer", Active: "failed", Sub: "failed"},
	}; !slices.Equal(r.Units, want) {
		t.Errorf("units %+v, want %+v", r.Units, want)
	}
	if r.Release != release.Version() || r.Format != document.NewestFormat || r.Facts.Kernel == "" || r.Sent.IsZero() {
		t.Errorf("%+v", r)
	}
	b, err := json.Marshal(r)
	if err != nil || strings.Contains(string(b), "null") {
		t.Errorf("%s, %v", b, err)
	}
}

// TestForwarder checks that an empty part of the forwarder's status is an empty list in the report.
// A provider would refuse null.
func TestForwarder(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "status.sock")
	ln, err := status.Listen(socket, 0o660)
	if err != nil {
		t.Fatal(err)
	}
	fallbacks := []hostreport.Fallback{{Forwarder: document.Addresses{"192.0.2.1:4610"}, Reason: "no answer over UDP"}}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan struct{})
	go func() {
		defer close(served)
		status.Serve(ctx, ln, func() status.Report { return status.Report{State: "running", Connections: 3, Fallbacks: fallbacks} })
	}()
	defer func() { cancel(); <-served }()
	r := (&report.Collector{Config: report.Config{Layout: hostdir.Layout(t.TempDir()), Socket: socket}}).Collect(t.Context())
	if r.Forwarder == nil || r.Forwarder.State != "running" || r.Forwarder.Connections != 3 || len(r.Forwarder.Fallbacks) != 1 || r.Forwarder.Fallbacks[0].Reason != fallbacks[0].Reason {
		t.Fatalf("%+v", r.Forwarder)
	}
	b, err := json.Marshal(r)
	if err != nil || strings.Contains(string(b), "null") {
		t.Errorf("%s, %v", b, err)
	}
}

// TestNothing checks that a host without documents can also report.
func TestNothing(t *testing.T) {
	r := (&report.Collector{Config: report.Config{Layout: hostdir.Layout(t.TempDir())}}).Collect(t.Context())
	if len(r.Documents) != 0 || r.Needs == nil || r.Units == nil {
		t.Errorf("%+v", r)
	}
}
