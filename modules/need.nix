# The options of a need: its files, and when the units that use them start.
{ lib, ... }:
let
  inherit (lib) mkOption types;
in
{
  options = {
    files = mkOption {
      type = types.attrsOf types.str;
      readOnly = true;
      description = "Paths of the delivered files, by name.";
    };
    target = mkOption {
      type = types.str;
      readOnly = true;
      description = ''
        The systemd target that is reached when the need is fulfilled, for `After=` of units.
      '';
    };
    units = mkOption {
      type = types.listOf types.str;
      example = [ "wiki.service" ];
      description = ''
        Units that use the files. The default is the units that activation notifies of a change.
      '';
    };
    start = mkOption {
      type = types.enum [
        "fulfilled"
        "placeholders"
        "credential"
        "always"
      ];
      default = "fulfilled";
      description = ''
        When `units` start. Activation restarts them when the files change.

        - `fulfilled`: activation starts them when the need is fulfilled.
        - `placeholders`: at boot, with `placeholders` in the files until the need is fulfilled.
        - `credential`: at boot, waiting for their credentials, such as `oidc_client-secret`. A switch may
          wait for them.
        - `always`: at boot, without the files until the need is fulfilled.
      '';
    };
    adopt = mkOption {
      type = types.nullOr types.str;
      default = null;
      example = "/run/secrets/wiki-oidc";
      description = ''
        Directory with the same files from another tool. Activation takes them over instead of requesting
        the need, until the need is fulfilled for the first time.
      '';
    };
    placeholders = mkOption {
      type = types.attrsOf types.str;
      default = { };
      example.client-secret = "not-yet";
      description = ''
        Contents of the files until the need is fulfilled, by name; the default is `placeholder`. Everybody
        can read them in the Nix store.
      '';
    };
  };
}
