# These functions are measured by the benchmark of the compiler. Each function returns a small
# value whose evaluation requires all the work.
let
  inherit (builtins)
    attrNames
    attrValues
    deepSeq
    foldl'
    fromJSON
    length
    mapAttrs
    readFile
    stringLength
    toJSON
    ;
  inherit (import ../../../nix) mkCluster;

  topology = import ./topology.nix;
  cluster = arguments: mkCluster (topology arguments);
  sum = f: set: foldl' (n: name: n + f set.${name}) 0 (attrNames set);
  size = sum (sum (d: stringLength d.body + stringLength d.envelope));
in
{
  # All documents of all hosts, after all checks.
  full = hosts: size (cluster { inherit hosts; }).compiled;

  # The checks of the topology alone.
  validate = hosts: length (cluster { inherit hosts; }).faults;

  # The documents of the host in the middle, while each other host has `elsewhere` services.
  one =
    hosts: elsewhere:
    size { one = (cluster { inherit hosts elsewhere; }).documents."host-${toString (hosts / 2)}"; };

  # For comparison, the part of the topology that decides which services run on that host and who
  # may reach them: the hosts of services, the holders of roles, and the contents of the roles.
  visit =
    hosts: elsewhere:
    let
      t = topology { inherit hosts elsewhere; };
    in
    deepSeq [
      (map (h: [
        h.address
        h.sshHostKey
        h.users
      ]) (attrValues t.hosts))
      (map (s: [
        s.host
        (s.roles or [ ])
      ]) (attrValues t.services))
      (attrValues t.roles)
    ] 0;

  # For comparison, the values of all documents alone, and the time that builtins need to read and
  # serialize these values.
  values =
    hosts: mapAttrs (_: mapAttrs (_: d: fromJSON d.body)) (cluster { inherit hosts; }).compiled;
  baseline = file: sum (sum (d: stringLength (toJSON d))) (fromJSON (readFile file));
  read = file: length (attrValues (fromJSON (readFile file)));

  # For comparison, the module system of nixpkgs, which only checks the types of hosts and services.
  modules =
    lib: hosts:
    let
      inherit (import lib) evalModules mkOption types;
      text = mkOption {
        type = types.str;
        default = "";
      };
      texts = mkOption {
        type = types.listOf types.str;
        default = [ ];
      };
      port = mkOption {
        type = types.nullOr types.port;
        default = null;
      };
      set =
        options:
        mkOption {
          type = types.attrsOf (types.submodule { inherit options; });
          default = { };
        };
      written = topology { inherit hosts; };
      evaluated = evalModules {
        modules = [
          {
            options = {
              hosts = set {
                address = text;
                sshHostKey = text;
                loopback = text;
                users = texts;
              };
              services = set {
                host = text;
                port = port;
                user = text;
                roles = texts;
                sso = mkOption {
                  type = types.submodule {
                    options = {
                      mode = text;
                      redirectURIs = texts;
                    };
                  };
                  default = { };
                };
              };
            };
          }
          { inherit (written) hosts services; }
        ];
      };
    in
    deepSeq { inherit (evaluated.config) hosts services; } 0;

  types =
    hosts:
    let
      language = import ../../../nix/language;
      written = topology { inherit hosts; };
    in
    deepSeq [ (language.faults written) (language.clean written) ] 0;
}
