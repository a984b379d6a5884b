package compile

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

func TestReadTopology(t *testing.T) {
	src := flake(t, `{ one = mkCluster base; }`)
	top, err := ReadTopology(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	wiki, ann := top.Services["wiki"], top.Users["ann"]
	if top.Name != "golden" || top.Hosts["beta"].ID.Short() != "node/beta" || !wiki.Published || wiki.IDs[0].Short() != "service/wiki" ||
		!slices.Equal(wiki.Hosts, []string{"beta"}) || !slices.Equal(ann.Hosts, []string{"beta"}) || !slices.Equal(ann.Roles, []string{"reader"}) ||
		!slices.Equal(top.Roles["reader"].Services, []string{"wiki"}) || !slices.Equal(top.Hosts["alpha"].Kinds, []string{"cert"}) ||
		wiki.Protocol != "tcp" || wiki.Visibility != "cluster" || wiki.Scope != "cluster" {
		t.Errorf("got %+v", top)
	}
}

// TestFaultsWithholdEverything checks that the topology of a cluster with faults is not available.
func TestFaultsWithholdEverything(t *testing.T) {
	src := flake(t, `{ one = mkCluster (base // { users.ann.roles = [ "reder" ]; }); }`)
	var faults *FaultsError
	if top, err := ReadTopology(t.Context(), src); !errors.As(err, &faults) || top.Hosts != nil {
		t.Errorf("got %v, %v", top, err)
	}
	if snap, err := Read(t.Context(), src); !errors.As(err, &faults) || snap.Documents != nil {
		t.Errorf("got %v, %v", snap, err)
	}
}

// TestOutside checks that a service leads outside if its upstream is not on one of its own hosts.
func TestOutside(t *testing.T) {
	upstreams := map[string]string{ // where it leads, "" for inside
		"127.0.0.1:80": "", "127.1.2.3:80": "", "[::1]:80": "", "[::]:80": "", "0.0.0.0:80": "", "localhost:80": "", "unix:/run/a:80": "",
		"192.0.2.2:80":     "", // beta's own address
		"192.0.2.77:80":    "192.0.2.77:80",
		"[2001:db8::1]:80": "[2001:db8::1]:80",
		"api.example:80":   "api.example:80",
	}
	services, names := "", map[string]string{}
	for upstream := range upstreams {
		name := fmt.Sprintf("s%d", len(names))
		names[name] = upstream
		services += fmt.Sprintf("%s = { host = \"beta\"; listenPort = %d; upstream = %q; };\n", name, 1000+len(names), upstream)
	}
	top, err := ReadTopology(t.Context(), flake(t, "{ one = mkCluster (base // { services = base.services // {\n"+services+"}; }); }"))
	if err != nil {
		t.Fatal(err)
	}
	for name, upstream := range names {
		if got := top.Services[name].Outside; got != upstreams[upstream] {
			t.Errorf("%s: leads to %q, want %q", upstream, got, upstreams[upstream])
		}
	}
}
