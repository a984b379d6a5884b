# A provider host: answers what the hosts of the cluster need.
packages:
{ config, lib, pkgs, ... }:
let
  inherit (lib) elemAt literalExpression match mkDefault mkEnableOption mkIf mkMerge mkOption mkPackageOption optional toInt types;
  florete = import ./lib.nix { inherit config lib; };
  cfg = config.services.florete.provider;
  host = config.services.florete.host;
  inherit (florete) policy;
  provides = kind: policy != null && policy.kinds ? ${kind};
  format = pkgs.formats.json { };
  users = cfg.settings.oidc.users or "";
  files = cfg.settings.file.dir or "";
in
{
  key = "florete/provider";

  options.services.florete.provider = {
    enable = mkEnableOption "answering what the hosts of the cluster need" // {
      default = host.enable && policy != null;
      defaultText = literalExpression "the cluster says that this host provides";
    };
    package = mkPackageOption (packages pkgs.stdenv.hostPlatform.system) "florete" { pkgsText = "florete.packages.\${system}"; }
      // { default = host.package; defaultText = literalExpression "config.services.florete.host.package"; };
    settings = mkOption {
      type = types.submodule { freeformType = format.type; };
      default = { };
      example = literalExpression "{ cert.issuingCertificate = ./issuing.crt; }";
      description = ''
        What `/etc/florete/provider.hujson` says: `policy`, `state`, `identity`, and of
        each kind that this host runs `cert.issuingCertificate`, `config.artifacts`,
        `file.dir`, `oidc.listen` and `oidc.users`. What the cluster gives this host to
        provide has settings already.
      '';
    };
    usersFile = mkOption {
      type = types.nullOr types.str;
      default = null;
      example = "/run/keys/users.hujson";
      description = ''
        Who can sign in, with password hashes: a file outside the Nix store. The
        provider gets its content when it starts; the file may be root's alone.
      '';
    };
    openFirewall = mkOption {
      type = types.bool;
      default = host.openFirewall;
      defaultText = literalExpression "config.services.florete.host.openFirewall";
      description = "Whether to open the TCP port on which hosts reach this provider.";
    };
  };

  config = mkIf cfg.enable {
    assertions = optional (florete.known && policy == null) {
      assertion = false;
      message = "services.florete.provider is enabled, but the cluster gives host ${config.services.florete.hostName} nothing to provide: "
        + "name it in providers.<kind>.hosts, or leave services.florete.provider.enable out";
    }
    ++ optional (cfg.usersFile != null && florete.inStore cfg.usersFile) (florete.refused "services.florete.provider.usersFile" cfg.usersFile)
    ++ optional (florete.inStore users) (florete.refused "services.florete.provider.settings.oidc.users" users)
    ++ optional (florete.inStore files) (florete.refused "services.florete.provider.settings.file.dir" files)
    ++ optional (provides "oidc" && users == "") {
      assertion = false;
      message = "services.florete.provider.usersFile is not set, and this host signs people in: write services.florete.provider.usersFile = \"/run/keys/users.hujson\";";
    };

    services.florete = mkIf (policy != null) {
      provider.settings = mkMerge [
        { policy = mkDefault "/etc/florete/documents"; state = mkDefault "/var/lib/florete-provider"; }
        (mkIf (provides "cert") { cert.issuingCertificate = mkDefault "/var/lib/florete-provider/issuing.crt"; })
        (mkIf (!provides "cert") { identity = mkDefault "/var/lib/florete/needs/cert-service-florete-provider"; })
        (mkIf (provides "config") { config.artifacts = mkDefault "/srv/florete"; })
        (mkIf (provides "file") { file.dir = mkDefault "/var/lib/florete-provider/files"; })
        (mkIf (provides "oidc") { oidc.listen = mkDefault "127.0.0.1:5556"; })
        (mkIf (cfg.usersFile != null) { oidc.users = mkDefault "/run/credentials/florete-provider.service/users"; })
      ];
      units = florete.defaults (name: name == "florete-provider.service") {
        inherit (cfg) package;
        settings.provider = cfg.settings;
        credentials = if cfg.usersFile == null then { } else { users = cfg.usersFile; };
      };
    };

    environment.etc."florete/provider.hujson" = mkIf (policy != null) { source = format.generate "provider.hujson" cfg.settings; };
    networking.firewall.allowedTCPPorts = mkIf (policy != null && cfg.openFirewall)
      [ (toInt (elemAt (match ".*:([0-9]+)" policy.provider.address) 0)) ];
  };
}
