# comin: hosts pull their systems. No operator is there to confirm, so the host confirms by itself
# once it reaches a service of another host. Otherwise it goes back, and comin tries the next
# commit.
#
#   imports = [ comin.nixosModules.comin ./comin.nix ];
{
  config,
  pkgs,
  ...
}:
{
  services.comin = {
    enable = true;
    remotes = [
      {
        name = "origin";
        url = "https://git.example.org/cluster.git";
      }
    ];
    postDeploymentCommand = pkgs.writeShellScript "confirm" ''
      change=/var/lib/florete/change.json
      [ ! -e "$change" ] || {
        ${config.services.florete.host.package}/bin/flor ping metrics &&
        ${config.services.florete.host.package}/bin/flor sync --confirm "$(${pkgs.jq}/bin/jq -r .id "$change")"
      }
    '';
  };
  services.florete.confirm.enable = true;
}
