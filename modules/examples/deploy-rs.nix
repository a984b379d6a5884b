# deploy-rs: a node for every host of the cluster that has a system in the flake. The rollback of
# deploy-rs checks whether SSH works; services.florete.confirm waits for a person or for
# florctl. One of the two is enough, and this example uses Florete's.
#
#   outputs.deploy = import ./deploy-rs.nix { inherit deploy-rs cluster; inherit (self) nixosConfigurations; };
{
  deploy-rs,
  cluster,
  nixosConfigurations,
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
  nodes = mapAttrs (name: host: {
    hostname = if host.address == [ ] then name else head host.address;
    sshUser = "root";
    autoRollback = false;
    magicRollback = false;
    profiles.system.path =
      deploy-rs.lib.${if host.system == null then "x86_64-linux" else host.system}.activate.nixos
        nixosConfigurations.${name};
  }) (intersectAttrs nixosConfigurations topology.hosts);
}
