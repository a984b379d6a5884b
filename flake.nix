{
  description = "Florete: a cluster of machines from one flake";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-26.05";

  # nixpkgs provides packages, formatter, devShells and VM tests. The other outputs do not use it,
  # and evaluate offline.
  outputs =
    { self, nixpkgs }:
    let
      each =
        f:
        builtins.listToAttrs (
          map
            (name: {
              inherit name;
              value = f name;
            })
            [
              "aarch64-linux"
              "x86_64-linux"
            ]
        );
      pkgs = system: nixpkgs.legacyPackages.${system};
      # nixfmt of nixpkgs 26.05 follows RFC 166.
      formatters = pkgs: builtins.attrValues { inherit (pkgs) findutils go nixfmt; };
      # The programs that scripts in tests install on Debian, the linters, and programs of the
      # scenarios.
      tools =
        pkgs:
        formatters pkgs
        ++ builtins.attrValues {
          inherit (pkgs)
            apacheHttpd
            curl
            dpkg
            e2fsprogs
            gcc
            git
            iproute2
            mmdebstrap
            nftables
            nix
            openssh
            python3
            ruff
            shellcheck
            systemd
            util-linux
            ;
        };
      modules = import ./modules (system: self.packages.${system});
    in
    {
      lib = import ./nix // {
        # The NixOS module for a host in a second cluster, which sets hosts.<name>.instance.
        instance = name: (modules name).default;
      };

      flakeModules.default = ./modules/flake.nix;
      templates.default = {
        path = ./nix/templates/cluster;
        description = "A cluster as a folder of files";
      };

      nixosModules = modules "";

      packages = each (system: rec {
        florete = (pkgs system).callPackage ./modules/package.nix { };
        florctl-pkcs11 = (pkgs system).callPackage ./modules/package.nix { pkcs11 = true; };
        default = florete;
        docs = (pkgs system).runCommand "florete-docs" { nativeBuildInputs = [ (pkgs system).mdbook ]; } ''
          bash ${self}/docs/build $out
        '';
      });
      overlays.default = final: _: { florete = final.callPackage ./modules/package.nix { }; };

      # Uses Go from PATH, or else from the development shell. The source is in the store already,
      # and old versions of Nix accept only derivations as context.
      apps = each (_: {
        demo = {
          type = "app";
          program = builtins.unsafeDiscardStringContext "${self}/tests/demo";
        };
      });

      devShells = each (system: {
        default = (pkgs system).mkShell {
          packages = tools (pkgs system);
        };
      });
      formatter = each (
        system:
        (pkgs system).writeShellApplication {
          name = "florete-fmt";
          runtimeInputs = formatters (pkgs system);
          text = ''
            find "''${@:-.}" -name '*.go' -exec gofmt -l -w {} +
            find "''${@:-.}" -name '*.nix' -exec nixfmt {} +
          '';
        }
      );

      checks = each (
        system:
        {
          compiler = import ./tests/golden/compiler/check.nix system;
          example = (self.lib.mkCluster (import ./tests/cluster/cluster.nix)).check system;
        }
        // import ./tests/vm {
          florete = self;
          pkgs = pkgs system;
        }
      );
    };
}
