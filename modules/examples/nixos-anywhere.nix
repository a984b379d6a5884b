# nixos-anywhere: installs a machine as a host of the cluster. The machine boots any system with SSH
# and kexec, such as the rescue system of a hosting provider or the NixOS installer.
#
#   outputs.nixosConfigurations = import ./nixos-anywhere.nix {
#     inherit nixpkgs disko florete cluster;
#     machines.raishan = { disk = "/dev/sda"; configuration = ./raishan.nix; };
#   };
#
#   florctl deploy --new ~/raishan raishan
#   nixos-anywhere --flake .#raishan --extra-files ~/raishan root@192.0.2.7
#
# The first command creates the SSH host key with which the machine enrols at its first start. The
# second command copies the key to where sshd reads it. Nothing else needs to be copied.
{
  nixpkgs,
  disko,
  florete,
  cluster,
  machines,
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
mapAttrs (
  name: host:
  nixpkgs.lib.nixosSystem {
    system = if host.system == null then "x86_64-linux" else host.system;
    modules = [
      disko.nixosModules.disko
      florete.nixosModules.default
      machines.${name}.configuration
      {
        networking.hostName = name;
        services.florete.cluster = cluster;
        # sshd must not replace the copied key, with which activation enrols the machine.
        services.openssh = {
          enable = true;
          hostKeys = [
            {
              path = "/etc/ssh/ssh_host_ed25519_key";
              type = "ed25519";
            }
          ];
        };
        boot.loader.grub.efiSupport = true;
        boot.loader.grub.efiInstallAsRemovable = true;
        disko.devices.disk.main = {
          device = machines.${name}.disk;
          type = "disk";
          content = {
            type = "gpt";
            partitions = {
              boot = {
                size = "1M";
                type = "EF02"; # for GRUB, if the machine has no UEFI
              };
              ESP = {
                size = "512M";
                type = "EF00";
                content = {
                  type = "filesystem";
                  format = "vfat";
                  mountpoint = "/boot";
                  mountOptions = [ "umask=0077" ];
                };
              };
              root = {
                size = "100%";
                content = {
                  type = "filesystem";
                  format = "ext4";
                  mountpoint = "/";
                };
              };
            };
          };
        };
      }
    ];
  }
) (intersectAttrs machines topology.hosts)
