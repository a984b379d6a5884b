# A switch that undoes itself, unless an operator confirms it.
{
  florete,
  lib,
  ...
}:
let
  inherit (lib)
    mkEnableOption
    mkIf
    mkOption
    types
    ;
  cfg = florete.cfg.confirm;
in
{
  options.services.${florete.prefix}.confirm = {
    enable = mkEnableOption "going back from a `switch` or `test` to this configuration by itself, unless somebody confirms it";
    timeout = mkOption {
      type = types.strMatching "([0-9]+(h|m|s))+";
      default = "5m";
      example = "90s";
      description = "How long to wait for a confirmation, by `flor sync --confirm ID` from a new login.";
    };
  };

  config = mkIf (cfg.enable && florete.cfg.host.enable && florete.known) {
    # This runs before anything of the new system is in force, with programs of the new system, so
    # the old system need not contain Florete.
    system.preSwitchChecks.${florete.prefix} = florete.arm {
      bin = "${florete.cfg.host.package}/bin";
      inherit (cfg) timeout;
    };
  };
}
