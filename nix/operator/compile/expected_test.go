package compile

import (
	"encoding/json"
	"os/exec"
	"slices"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
)

// startedAtBoot lists hosts that have each kind of unit between them: their manifests, and those of
// their units that start at boot.
const startedAtBoot = `
let
  golden = ../../../tests/golden/compiler;
  inherit (import (golden + "/merge.nix")) merge;
  inherit (import ../../lib/names.nix) sri;
  inherit (import ../..) mkCluster;
  key = name: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA" + builtins.substring 8 42 (sri name);
  base = import (golden + "/base.nix") { inherit key; };
  hosts = cluster: builtins.attrValues (builtins.mapAttrs (name: units: {
    inherit name;
    inherit (cluster.topology.hosts.${name}) instance;
    manifest = cluster.manifests.${name};
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

// TestUnitsOfManifests checks that a manifest names exactly the units that start at boot.
func TestUnitsOfManifests(t *testing.T) {
	out, err := exec.Command("nix-instantiate", "--eval", "--strict", "--json", "-E", startedAtBoot).Output()
	if err != nil {
		t.Fatal(err, string(err.(*exec.ExitError).Stderr))
	}
	var hosts []struct {
		Name     string
		Instance hostdir.Instance
		Manifest document.Manifest
		Started  []string
	}
	if err := json.Unmarshal(out, &hosts); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, h := range hosts {
		var named []string
		for name := range h.Manifest.Units {
			seen[name] = true
			named = append(named, h.Instance.Unit(name))
		}
		slices.Sort(named)
		// The target only groups services that are named.
		started := slices.DeleteFunc(h.Started, func(unit string) bool { return unit == h.Instance.Unit("provider.target") })
		if !slices.Equal(named, started) {
			t.Errorf("%s: the manifest names %v, and at boot start %v", h.Name, named, started)
		}
	}
	for _, name := range []string{"credentials.socket", "guard.service", "host.socket", "ingress.service", "store.service", "store-certificates.path", "workload.socket"} {
		if !seen[name] {
			t.Errorf("no host is to have %s", name)
		}
	}
}
