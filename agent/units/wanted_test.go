package units

import (
	"encoding/json"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
)

// installed lists the hosts of clusters that have each kind of unit: their documents, and those of
// their units that the compiler has started at boot.
const installed = `
let
  golden = ../../tests/golden/compiler;
  inherit (import (golden + "/merge.nix")) merge;
  inherit (import ../../nix/lib/names.nix) sri;
  inherit (import ../../nix) mkCluster;
  key = name: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA" + builtins.substring 8 42 (sri name);
  base = import (golden + "/base.nix") { inherit key; };
  hosts = cluster: builtins.attrValues (builtins.mapAttrs (name: units: {
    inherit name;
    inherit (cluster.topology.hosts.${name}) instance;
    manifest = cluster.manifests.${name};
    policy = cluster.policies.${name} or null;
    started = builtins.filter (u: builtins.match ".*\\[Install].*" units.${u} != null) (builtins.attrNames units);
  }) cluster.units);
in
hosts (mkCluster (merge base {
  hosts.delta = { address = "192.0.2.4"; sshHostKey = key "delta"; instance = "blue"; };
  services.host = { host = "delta"; scope = "node"; upstream = "unix:/run/florete_blue-host.sock"; listenPort = 80; };
}))
++ builtins.concatMap (case: hosts (mkCluster (import (golden + "/${case}/topology.nix") { inherit base key merge; }))) [
  "databases" "minimal" "shared-store" "tls" "workload"
]`

// TestWanted holds the units that a host should have to those that the compiler writes for it.
func TestWanted(t *testing.T) {
	cmd := exec.Command("nix-instantiate", "--eval", "--strict", "--json", "-E", installed)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err, string(err.(*exec.ExitError).Stderr))
	}
	var hosts []struct {
		Name     string
		Instance hostdir.Instance
		Manifest document.Manifest
		Policy   *document.Policy
		Started  []string
	}
	if err := json.Unmarshal(out, &hosts); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, h := range hosts {
		var provides hostdir.Provided
		if p := h.Policy; p != nil {
			provides = hostdir.Provided{Kinds: slices.Collect(maps.Keys(p.Provider)), SharesStore: p.Store != nil, StoreMember: p.Store != nil && p.Store.Member != nil}
		}
		wanted := Wanted(h.Instance, h.Manifest, provides)
		for _, unit := range h.Started {
			name := strings.TrimPrefix(unit, h.Instance.Unit(""))
			_, ok := wanted[unit]
			seen[name] = seen[name] || ok
			// The forwarder is wanted once the host has its certificate, the guard where it has something to
			// guard, and the target only groups services that are wanted.
			if !ok && !slices.Contains([]string{"agent.service", "guard.service", "provider.target"}, name) {
				t.Errorf("%s: %s starts at boot, and nobody misses it", h.Name, unit)
			}
			delete(wanted, unit)
		}
		if len(wanted) > 0 {
			t.Errorf("%s: the compiler has no %v", h.Name, wanted)
		}
	}
	for _, name := range []string{"credentials.socket", "guard.service", "host.socket", "ingress.service", "store.service", "store-certificates.path", "workload.socket"} {
		if !seen[name] {
			t.Errorf("no host is to have %s", name)
		}
	}
}
