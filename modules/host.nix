# Activation: this host fetches its certificates and secrets, and renews them.
{
  florete,
  package,
  lib,
  pkgs,
  ...
}:
let
  inherit (lib)
    elem
    literalExpression
    mapAttrs
    mkEnableOption
    mkIf
    mkOption
    optional
    types
    ;
  inherit (florete.cfg) cluster;
  cfg = florete.cfg.host;
  key = cfg.settings.ssh-host-key or "";

  # A program that is called by one of these names acts on this instance.
  links = pkgs.linkFarm florete.prefix (
    map
      (program: {
        name = "bin/${program}_${florete.instance}";
        path = "${cfg.package}/bin/${program}";
      })
      [
        "flor"
        "flor-provider"
      ]
  );
in
{
  options.services.${florete.prefix}.host = {
    enable = mkEnableOption "fetching what this host needs from its cluster's providers" // {
      default = cluster != null;
      defaultText = literalExpression "config.${florete.option}.cluster != null";
    };
    inherit package;
    settings = florete.flags "flor activate" { backoff-max = "1m"; };
    openFirewall = mkOption {
      type = types.bool;
      default = false;
      description = ''
        Whether to open the ports on which this host listens. It is the default of `forwarder.openFirewall`
        and `provider.openFirewall`. Activation itself listens on no port.
      '';
    };
  };

  config = mkIf cfg.enable {
    assertions =
      optional (cluster == null) {
        assertion = false;
        message = florete.fault;
      }
      ++ optional (florete.inStore key) (
        florete.refused "${florete.option}.host.settings.ssh-host-key" key
      );

    services.${florete.prefix}.units = mkIf florete.known (
      florete.defaults
        (
          name:
          !elem name (
            map florete.unit [
              "agent.service"
              "guard.service"
              "hosts-file.service"
            ]
          )
          && !lib.hasPrefix (florete.unit "provider-") name
        )
        {
          inherit (cfg) package;
          settings.activate = cfg.settings;
        }
    );

    environment = mkIf florete.known {
      etc."${florete.prefix}/documents".source = "${florete.directory}";
      systemPackages = [ (if florete.instance == "" then cfg.package else links) ];
    };

    users = mkIf florete.known {
      users = mapAttrs (name: account: {
        isSystemUser = true;
        group = name;
        inherit (account) description home;
      }) (florete.accounts florete.policy);
      groups = mapAttrs (_: _: { }) (florete.accounts florete.policy);
    };
  };
}
