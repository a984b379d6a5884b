# NixOS modules, which make the same documents and units as on other systems.
#
#   packages     system → packages of the flake
#   instance   of the host in the cluster, or "" if the host is in one cluster only. Options,
#              units, accounts and files of each instance have their own names.
packages: instance:
let
  inherit (import ../nix/units instance) prefix;
  word = (import ../nix/language/formats).instance;

  # The module system imports this once, even if several modules do.
  module = file: imports: {
    _file = file;
    key = "${prefix}/${baseNameOf file}";
    imports = imports ++ [
      (
        {
          config,
          lib,
          pkgs,
          ...
        }@args:
        import file (
          args
          // {
            florete = import ./lib.nix { inherit config lib instance; };
            package = lib.mkPackageOption (packages pkgs.stdenv.hostPlatform.system) "florete" {
              pkgsText = "florete.packages.\${system}";
            };
          }
        )
      )
    ];
  };

  cluster = module ./cluster.nix [ (module ./listeners.nix [ ]) ];
  needs = module ./needs.nix [ cluster ];
in
if instance != "" && !word.valid instance then
  throw "florete.lib.instance ${builtins.toJSON instance}: want ${word.about.want}"
else
  rec {
    host = module ./host.nix [
      needs
      (module ./confirm.nix [ cluster ])
    ];
    forwarder = module ./forwarder.nix [
      host
      (module ./ssh.nix [ host ])
    ];
    provider = module ./provider.nix [ host ];
    # Everything that the documents of the host require.
    default = {
      imports = [
        host
        forwarder
        provider
      ];
    };
  }
