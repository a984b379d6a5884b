# colmena: a hive with every server of the cluster. `colmena apply --on ursula` switches the host
# and starts the timer that undoes the switch; `ssh root@ursula flor sync --confirm ID` keeps it.
#
#   outputs.colmena = import ./colmena.nix { inherit nixpkgs florete cluster configurations; };
#
# configurations contains a NixOS configuration for each host. cluster is the flake with the output
# florete.<name>.
{
  nixpkgs,
  florete,
  cluster,
  configurations,
}:
let
  inherit (builtins)
    attrValues
    head
    intersectAttrs
    mapAttrs
    ;
  inherit (head (attrValues cluster.florete)) topology;
in
{
  meta.nixpkgs = nixpkgs.legacyPackages.x86_64-linux;
}
// mapAttrs (name: host: {
  deployment = {
    targetHost = if host.address == [ ] then name else head host.address;
    targetUser = "root";
    inherit (host) tags;
  };
  imports = [
    florete.nixosModules.default
    configurations.${name}
  ];
  services.florete = {
    inherit cluster;
    confirm.enable = true;
  };
}) (intersectAttrs configurations topology.hosts)
