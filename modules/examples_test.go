package modules_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestExamples evaluates the examples for other deployment tools, with stand-ins for the modules of
// their flakes.
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
		  anywhere = import ./examples/nixos-anywhere.nix {
		    inherit cluster;
		    nixpkgs.lib.nixosSystem = system: system;
		    disko.nixosModules.disko = "disko";
		    florete.nixosModules.default = "florete";
		    machines.raishan = { disk = "/dev/sda"; configuration = "raishan.nix"; };
		    machines.printer = { disk = "/dev/sdb"; configuration = "no host of the cluster"; };
		  };
		  own = builtins.elemAt anywhere.raishan.modules 3;
		in
		{
		  anywhere = [ (builtins.attrNames anywhere) anywhere.raishan.system (builtins.filter builtins.isString anywhere.raishan.modules) own.networking.hostName (own.services.florete.cluster == cluster)
		    own.services.openssh.hostKeys own.disko.devices.disk.main.device (builtins.attrNames own.disko.devices.disk.main.content.partitions) ];
		  colmena = builtins.mapAttrs (_: n: { inherit (n) deployment imports; inherit (n.services.florete) confirm; }) (removeAttrs hive [ "meta" ]);
		  rs = builtins.mapAttrs (_: n: [ n.hostname n.profiles.system.path ]) rs.nodes;
		  comin = [ (builtins.attrNames comin.services.comin) comin.services.florete.confirm.enable (builtins.match ".*/florete/bin/flor sync --confirm .*" comin.services.comin.postDeploymentCommand != null) ];
		}`).CombinedOutput()
	want := `{"anywhere":[["raishan"],"x86_64-linux",["disko","florete","raishan.nix"],"raishan",true,[{"path":"/etc/ssh/ssh_host_ed25519_key","type":"ed25519"}],"/dev/sda",["ESP","boot","root"]],"colmena":{"raishan":{"confirm":{"enable":true},"deployment":{"tags":[],"targetHost":"127.77.0.2","targetUser":"root"},"imports":["florete","raishan.nix"]},"ursula":{"confirm":{"enable":true},"deployment":{"tags":[],"targetHost":"127.77.0.3","targetUser":"root"},"imports":["florete","ursula.nix"]}},"comin":[["enable","postDeploymentCommand","remotes"],true,true],"rs":{"raishan":["127.77.0.2","activates raishan.nix"],"ursula":["127.77.0.3","activates ursula.nix"]}}`
	if got := strings.TrimSpace(string(out)); err != nil || got != want {
		t.Errorf("%v: got\n%s\nwant\n%s", err, got, want)
	}
}
