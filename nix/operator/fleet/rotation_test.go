package fleet_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/fleet"
)

// TestRoots checks which hosts a rotation waits for, according to their reports.
func TestRoots(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	topology := compile.Topology{Name: "demo", Hosts: map[string]compile.Host{}}
	reports := map[string]hostreport.Kept{}
	add := func(host string, roots *hostreport.Roots) {
		topology.Hosts[host] = compile.Host{}
		b, err := json.Marshal(hostreport.Report{Format: document.NewestFormat, Sent: unixtime.Of(now.Add(-time.Hour)), Roots: roots})
		if err != nil {
			t.Fatal(err)
		}
		reports[host] = hostreport.Kept{Report: b, Received: unixtime.Of(now)}
	}
	add("before", &hostreport.Roots{Trusted: []string{"old"}, Anchors: []string{"old"}})
	add("half", &hostreport.Roots{Trusted: []string{"old"}, Partly: []string{"new"}, Anchors: []string{"old"}})
	add("both", &hostreport.Roots{Trusted: []string{"new", "old"}, Anchors: []string{"new", "old"}})
	add("renewed", &hostreport.Roots{Trusted: []string{"new"}, Partly: []string{"old"}, Anchors: []string{"new"}})
	add("after", &hostreport.Roots{Trusted: []string{"new"}, Anchors: []string{"new"}})
	add("lost", &hostreport.Roots{Trusted: []string{"new"}, Anchors: []string{trust.AnchorUnknown}})
	// Its clock is an hour late.
	add("lately", &hostreport.Roots{Trusted: []string{"new"}, Anchors: []string{"new"}, Since: unixtime.Of(now.Add(-time.Hour + 40*time.Second))})
	add("settled", &hostreport.Roots{Trusted: []string{"new"}, Anchors: []string{"new"}, Since: unixtime.Of(now.Add(-time.Hour))})
	add("older", nil)
	topology.Hosts["silent"] = compile.Host{}
	topology.Hosts["gone"] = compile.Host{}
	reports["stranger"] = hostreport.Kept{Report: json.RawMessage(`{}`)}
	add("garbled", nil)
	reports["garbled"] = hostreport.Kept{Report: json.RawMessage(`[]`), Received: unixtime.Of(now)}

	if _, err := fleet.ReadRoots(topology, reports, []string{"nobody"}, now); err == nil || err.Error() != "--without nobody: cluster demo has no such host" {
		t.Errorf("got %v", err)
	}
	r, err := fleet.ReadRoots(topology, reports, []string{"gone"}, now.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	never := map[string]string{"silent": "has never reported", "older": "has no roots: upgrade Florete there", "garbled": "its report of 1m0s ago cannot be read"}
	for what, c := range map[string]struct{ got, want map[string]string }{
		"unacknowledged": {r.Unacknowledged("new"), map[string]string{"before": "does not trust it", "half": "not wherever it verifies"}},
		"unrenewed": {r.Unrenewed("new"), map[string]string{
			"before": "lead to another root, until they are renewed within minutes: old", "half": ": old", "both": ": old", "lost": ": unknown", "lately": "had others until 20s ago"}},
		"trusted": {r.Trusted("old"), map[string]string{"before": "trusts it: ", "half": "trusts it: ", "both": "trusts it: ", "renewed": "trusts it somewhere"}},
	} {
		maps.Copy(c.want, never)
		if got, want := slices.Sorted(maps.Keys(c.got)), slices.Sorted(maps.Keys(c.want)); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
		for host, text := range c.want {
			if !strings.Contains(c.got[host], text) {
				t.Errorf("%s: %s: %q, want …%s…", what, host, c.got[host], text)
			}
		}
	}
	if err := r.Left([]string{"new", "old"}); err != nil {
		t.Error(err)
	}
	const left = "trust.roots lacks root old, to which certificates of before, both, half lead: keep this root there until it is retired: florctl ca rotate; for a host that is gone for good, pass --without HOST"
	if err := r.Left([]string{"new"}); err == nil || err.Error() != left {
		t.Errorf("%v, want %s", err, left)
	}
	if r.Trusting("new") != 6 || r.Leading("new") != 5 || r.Leading("old") != 3 {
		t.Errorf("%d, %d, %d", r.Trusting("new"), r.Leading("new"), r.Leading("old"))
	}
}
