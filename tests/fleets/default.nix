# Three clusters as people run them, whose hosts behind a NAT need no forwarded port. Names and
# addresses are invented; sizes and services are those of real fleets.
let
  inherit (builtins)
    attrNames
    listToAttrs
    mapAttrs
    substring
    ;
  inherit (import ../../nix) mkCluster;
  inherit (import ../../nix/lib/fault.nix) report;
  inherit (import ../../nix/lib/names.nix) sri;

  key = name: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA" + substring 8 42 (sri name);
  named =
    names: value:
    listToAttrs (
      map (name: {
        inherit name;
        value = value name;
      }) names
    );
  fleet =
    name: topology:
    let
      cluster = mkCluster (
        {
          inherit name;
          serial = 1;
          rev = "fleet";
          trustDomain = "${name}.flor";
          trust = {
            roots = [ "-----BEGIN CERTIFICATE-----\nZ29sZGVu\n-----END CERTIFICATE-----\n" ];
            signingKeys = [ "${name}-1:XCy7rhw63wRQyvwr3R1VkY5GBuQyEG/dv/+xh5K2B8c=" ];
          };
          serviceGroups = {
            control-plane = [ ];
            control-plane-write = [ ];
          }
          // topology.serviceGroups or { };
          roles = {
            node.serviceGroups = [ "control-plane" ];
            operator.serviceGroups = [
              "control-plane"
              "control-plane-write"
            ];
          }
          // topology.roles;
          hosts = mapAttrs (host: h: h // { sshHostKey = key host; }) topology.hosts;
        }
        // removeAttrs topology [
          "hosts"
          "roles"
          "serviceGroups"
        ]
      );
    in
    {
      report = if cluster.faults == [ ] then "" else report name cluster.faults;
      documents = if cluster.faults == [ ] then cluster.compiled else { };
      hosts = attrNames topology.hosts;
    };
in
mapAttrs (name: file: fleet name (import file { inherit named; })) {
  council = ./council.nix;
  foundation = ./foundation.nix;
  homelab = ./homelab;
}
