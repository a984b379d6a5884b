# Activation: this host fetches what it needs and keeps it fulfilled.
packages:
{ config, lib, pkgs, ... }:
let
  inherit (lib) concatMap mapAttrs mkEnableOption mkIf mkOption mkPackageOption optional types;
  florete = import ./lib.nix { inherit config lib; };
  cfg = config.services.florete.host;
  key = cfg.settings.ssh-host-key or "";
in
{
  key = "florete/host";
  imports = [ ./needs.nix ];

  options.services.florete.host = {
    enable = mkEnableOption "fetching what this host needs from its cluster's providers" // {
      default = config.services.florete.cluster != null;
      defaultText = lib.literalExpression "config.services.florete.cluster != null";
    };
    package = mkPackageOption (packages pkgs.stdenv.hostPlatform.system) "florete" { pkgsText = "florete.packages.\${system}"; };
    settings = florete.flags "flor activate" { backoff-max = "1m"; };
    openFirewall = mkOption {
      type = types.bool;
      default = false;
      description = ''
        Whether to open the ports that this host listens on, for whatever it runs:
        the default of the other roles' `openFirewall`. Activation itself listens on none.
      '';
    };
  };

  config = mkIf cfg.enable {
    assertions = optional (config.services.florete.cluster == null) { assertion = false; message = florete.fault; }
      ++ optional (florete.inStore key) (florete.refused "services.florete.host.settings.ssh-host-key" key);

    services.florete.units = mkIf florete.known (florete.defaults
      (name: !builtins.elem name [ "florete-agent.service" "florete-names.service" "florete-provider.service" ])
      { inherit (cfg) package; settings.activate = cfg.settings; });

    environment = mkIf florete.known {
      etc."florete/documents".source = "${florete.directory}";
      systemPackages = [ cfg.package ];
    };

    users = mkIf florete.known {
      users = mapAttrs
        (name: account: { isSystemUser = true; group = name; inherit (account) description home; })
        (florete.accounts florete.policy);
      groups = mapAttrs (_: _: { }) (florete.accounts florete.policy);
    };
  };
}
