# What is measured, as functions; each returns something small that took all the work.
let
  inherit (builtins) attrNames attrValues deepSeq foldl' fromJSON length mapAttrs readFile stringLength toJSON;
  inherit (import ../../../nix) mkCluster;

  cluster = arguments: mkCluster (import ./topology.nix arguments);
  sum = f: set: foldl' (n: name: n + f set.${name}) 0 (attrNames set);
  size = sum (sum (d: stringLength d.body + stringLength d.envelope));
in
{
  # Every document of every host, after every check.
  full = hosts: size (cluster { inherit hosts; }).compiled;

  # The checks alone.
  validate = hosts: length (cluster { inherit hosts; }).faults;

  # One host in the middle; `services` of each of the others.
  one = hosts: services: size { one = (cluster { inherit hosts services; }).documents."host-${toString (hosts / 2)}"; };

  # The values of all documents, for the baseline, and what builtins alone take to
  # serialize them; reading them in is part of it, for values come from somewhere.
  values = hosts: mapAttrs (_: mapAttrs (_: d: fromJSON d.body)) (cluster { inherit hosts; }).compiled;
  baseline = file: sum (sum (d: stringLength (toJSON d))) (fromJSON (readFile file));
  read = file: length (attrValues (fromJSON (readFile file)));

  # The module system of nixpkgs doing the types of hosts and services and nothing else.
  modules = lib: hosts:
    let
      inherit (import lib) evalModules mkOption types;
      text = mkOption { type = types.str; default = ""; };
      texts = mkOption { type = types.listOf types.str; default = [ ]; };
      port = mkOption { type = types.nullOr types.port; default = null; };
      set = options: mkOption { type = types.attrsOf (types.submodule { inherit options; }); default = { }; };
      topology = import ./topology.nix { inherit hosts; };
      evaluated = evalModules {
        modules = [
          {
            options = {
              hosts = set { address = text; sshHostKey = text; loopback = text; users = texts; };
              services = set {
                host = text;
                port = port;
                user = text;
                roles = texts;
                sso = mkOption { type = types.submodule { options = { mode = text; redirectURIs = texts; }; }; default = { }; };
              };
            };
          }
          { inherit (topology) hosts services; }
        ];
      };
    in
    deepSeq { inherit (evaluated.config) hosts services; } 0;

  types = hosts:
    let
      shape = import ../../../nix/shape.nix;
      topology = import ./topology.nix { inherit hosts; };
    in
    deepSeq [ (shape.faults topology) (shape.clean topology) ] 0;
}
