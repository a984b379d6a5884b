package modules_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFlake evaluates the uses of nixpkgs in the flake, with a nixpkgs that returns its arguments.
func TestFlake(t *testing.T) {
	cmd := exec.Command("nix-instantiate", "--eval", "--strict", "--json", "--expr", `
		let
		  pkgs = builtins.listToAttrs (map (name: { inherit name; value = name; }) [
		    "apacheHttpd" "curl" "dpkg" "e2fsprogs" "findutils" "gcc" "git" "go" "iproute2" "mmdebstrap" "nftables" "nix" "nixfmt" "openssh"
		    "python3" "ruff" "shellcheck" "systemd" "util-linux"
		  ]) // {
		    lib.platforms.linux = [ ];
		    mkShell = s: "shell: " + builtins.concatStringsSep " " s.packages;
		    writeShellApplication = a: "${a.name}: ${toString a.runtimeInputs}";
		    mdbook = "mdbook";
		    runCommand = name: a: script: "${name}: ${toString a.nativeBuildInputs}: ${builtins.unsafeDiscardStringContext script}";
		    callPackage = f: args: import f { inherit (pkgs) lib; buildGoModule = p: p.pname; };
		  };
		  flake = (import ../flake.nix).outputs {
		    self = flake // { outPath = toString ../.; };
		    nixpkgs.legacyPackages = { x86_64-linux = pkgs; aarch64-linux = pkgs; };
		  };
		  each = map (system: [
		    flake.packages.${system}.default flake.devShells.${system}.default flake.formatter.${system} flake.apps.${system}.demo.program
		    flake.packages.${system}.docs
		  ]);
		in
		[
		  (each [ "x86_64-linux" "aarch64-linux" ])
		  (flake.overlays.default pkgs pkgs).florete
		  (builtins.attrNames flake.nixosModules)
		  (map (m: m.key) (flake.lib.instance "blue").imports)
		  (flake.lib ? mkCluster)
		  (builtins.pathExists flake.flakeModules.default)
		  (builtins.pathExists flake.templates.default.path)
		]`)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	one := `["florete","shell: findutils go nixfmt apacheHttpd curl dpkg e2fsprogs gcc git iproute2 mmdebstrap nftables nix openssh python3 ruff shellcheck systemd util-linux","florete-fmt: findutils go nixfmt","` + root + `/tests/demo","florete-docs: mdbook: bash ` + root + `/docs/build $out\n"]`
	want := "[[" + one + "," + one + `],"florete",["default","forwarder","host","provider"],["florete_blue/host.nix","florete_blue/forwarder.nix","florete_blue/provider.nix"],true,true,true]`
	if got := strings.TrimSpace(string(out)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if info, err := os.Stat(filepath.Join(root, "tests/demo")); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("what nix run .#demo runs: %v", err)
	}
}

// TestInstanceName checks that an invalid instance name is refused where it is written.
func TestInstanceName(t *testing.T) {
	out, err := exec.Command("nix-instantiate", "--eval", "--expr", `(import ./. null "Blue").default`).CombinedOutput()
	want := `florete.lib.instance "Blue": want a short name`
	if err == nil || !strings.Contains(string(out), want) {
		t.Errorf("%v: got %s, want %s", err, out, want)
	}
}
