package modules_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestExamples evaluates what other tools that deploy are given, with stand-ins for what
// their flakes bring.
func TestExamples(t *testing.T) {
	out, err := exec.Command("nix-instantiate", "--eval", "--strict", "--json", "--expr", `
		let
		  cluster.florete.demo = (import ../nix).mkCluster (import ../tests/cluster/cluster.nix);
		  configurations = { ursula = "ursula.nix"; raishan = "raishan.nix"; printer = "no host of the cluster"; };
		  hive = import ./examples/colmena.nix {
		    inherit cluster configurations;
		    nixpkgs.legacyPackages.x86_64-linux = "packages";
		    florete.nixosModules.default = "florete";
		  };
		  rs = import ./examples/deploy-rs.nix {
		    inherit cluster;
		    nixosConfigurations = configurations;
		    deploy-rs.lib.x86_64-linux.activate.nixos = system: "activates " + system;
		  };
		  comin = import ./examples/comin.nix {
		    config.services.florete.host.package = "/florete";
		    pkgs = { jq = "/jq"; writeShellScript = _: text: text; };
		  };
		in
		{
		  colmena = builtins.mapAttrs (_: n: { inherit (n) deployment imports; inherit (n.services.florete) commitConfirm; }) (removeAttrs hive [ "meta" ]);
		  rs = builtins.mapAttrs (_: n: [ n.hostname n.profiles.system.path ]) rs.nodes;
		  comin = [ (builtins.attrNames comin.services.comin) comin.services.florete.commitConfirm.enable (builtins.match ".*/florete/bin/flor sync --confirm .*" comin.services.comin.postDeploymentCommand != null) ];
		}`).CombinedOutput()
	want := `{"colmena":{"raishan":{"commitConfirm":{"enable":true},"deployment":{"tags":[],"targetHost":"127.77.0.2","targetUser":"root"},"imports":["florete","raishan.nix"]},"ursula":{"commitConfirm":{"enable":true},"deployment":{"tags":[],"targetHost":"127.77.0.3","targetUser":"root"},"imports":["florete","ursula.nix"]}},"comin":[["enable","postDeploymentCommand","remotes"],true,true],"rs":{"raishan":["127.77.0.2","activates raishan.nix"],"ursula":["127.77.0.3","activates ursula.nix"]}}`
	if got := strings.TrimSpace(string(out)); err != nil || got != want {
		t.Errorf("%v: got\n%s\nwant\n%s", err, got, want)
	}
}
