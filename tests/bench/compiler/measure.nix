# The measured functions. Each returns something small that needed all the work.
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
  # Every document of every host, after every check.
  full = hosts: size (cluster { inherit hosts; }).compiled;

  # Only the checks.
  validate = hosts: length (cluster { inherit hosts; }).faults;

  # The host in the middle, while each of the others has `elsewhere` services, and everything in the
  # topology that decides what runs on the host and who may reach it: where services run, who holds
  # roles, and what the roles name.
  one =
    hosts: elsewhere:
    size { one = (cluster { inherit hosts elsewhere; }).documents."host-${toString (hosts / 2)}"; };
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

  # The values of all documents as a baseline, and the time that builtins need to serialize them,
  # including the time to read the values.
  values =
    hosts: mapAttrs (_: mapAttrs (_: d: fromJSON d.body)) (cluster { inherit hosts; }).compiled;
  baseline = file: sum (sum (d: stringLength (toJSON d))) (fromJSON (readFile file));
  read = file: length (attrValues (fromJSON (readFile file)));

  # The module system of nixpkgs, which only checks the types of hosts and services.
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
