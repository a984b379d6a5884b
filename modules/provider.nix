# A provider host, which answers the requests of the cluster's hosts.
{
  florete,
  package,
  lib,
  pkgs,
  ...
}:
let
  inherit (lib)
    any
    literalExpression
    mkDefault
    mkEnableOption
    mkIf
    mkMerge
    mkOption
    optional
    types
    ;
  inherit (florete)
    etc
    manifest
    policy
    state
    ;
  cfg = florete.cfg.provider;
  provides = kind: policy != null && policy.kinds ? ${kind};
  isProvider = name: lib.hasPrefix (florete.unit "provider-") name || name == florete.unit "store.service";
  member = policy.store.member or null;
  format = pkgs.formats.json { };
  users = cfg.settings.oidc.users or "";
  files = cfg.settings.file.dir or "";
in
{
  options.services.${florete.prefix}.provider = {
    enable = mkEnableOption "answering what the hosts of the cluster need" // {
      default = florete.cfg.host.enable && policy != null;
      defaultText = literalExpression "the cluster says that this host provides";
    };
    package = florete.asHost "package" package;
    settings = mkOption {
      type = types.submodule { freeformType = format.type; };
      default = { };
      example = literalExpression "{ cert.issuingCertificate = ./issuing.crt; }";
      description = ''
        What `${etc}/provider.hujson` has: `activation`, `state`, and of each
        kind that this host runs `cert.issuingCertificate`, `config.keep`,
        `federation.keys`, `file.dir`, `jwt.listen`, `oidc.listen`, `oidc.users` and `token.keys`. What the cluster gives this host to
        provide has settings already.
      '';
    };
    usersFile = mkOption {
      type = types.nullOr types.str;
      default = null;
      example = "/run/keys/users.hujson";
      description = ''
        File of the people who can sign in, with hashes of their passwords, outside the Nix store. The
        provider reads it when it starts. Only root needs to be able to read it.
      '';
    };
    connectorSecrets = mkOption {
      type = types.attrsOf types.str;
      default = { };
      example = {
        corp = "/run/keys/ldap";
      };
      description = ''
        Files of the passwords and client secrets of `providers.oidc.ldap` and `providers.oidc.upstream`, by
        name, outside the Nix store. Only root needs to be able to read them. It requires `usersFile`.
      '';
    };
    openFirewall = florete.asHost "openFirewall" (mkOption {
      type = types.bool;
      description = ''
        Whether to open the TCP ports on which hosts reach the providers of this host, one for each kind of need.
      '';
    });
  };

  config = mkIf cfg.enable {
    assertions =
      optional (florete.known && policy == null) {
        assertion = false;
        message =
          "${florete.option}.provider is enabled, but the cluster gives host ${florete.cfg.hostName} nothing to provide: "
          + "name it in providers.<kind>.hosts, or leave ${florete.option}.provider.enable out";
      }
      ++ optional (cfg.usersFile != null && florete.inStore cfg.usersFile) (
        florete.refused "${florete.option}.provider.usersFile" cfg.usersFile
      )
      ++ lib.concatMap (
        name:
        let
          option = "${florete.option}.provider.connectorSecrets.${name}";
          path = cfg.connectorSecrets.${name};
        in
        optional (florete.inStore path) (florete.refused option path)
        ++ optional (provides "oidc" && !(policy.kinds.oidc.ldap or { } // policy.kinds.oidc.upstream or { }) ? ${name}) {
          assertion = false;
          message = "${option} is of nothing: the cluster has no providers.oidc.ldap.${name} or providers.oidc.upstream.${name}";
        }
      ) (lib.attrNames cfg.connectorSecrets)
      ++ optional (cfg.connectorSecrets != { } && cfg.usersFile == null) {
        assertion = false;
        message = "${florete.option}.provider.connectorSecrets are given beside usersFile, which is not set: write ${florete.option}.provider.usersFile = \"/run/keys/users.hujson\";";
      }
      ++ optional (florete.inStore users) (
        florete.refused "${florete.option}.provider.settings.oidc.users" users
      )
      ++ optional (florete.inStore files) (
        florete.refused "${florete.option}.provider.settings.file.dir" files
      )
      ++ optional (provides "oidc" && !(policy.kinds.oidc ? registration) && users == "") {
        assertion = false;
        message = "${florete.option}.provider.usersFile is not set, and this host signs people in: write ${florete.option}.provider.usersFile = \"/run/keys/users.hujson\";";
      };

    services.${florete.prefix} = mkIf (policy != null) {
      provider.settings = mkMerge [
        {
          activation = mkDefault state;
          state = mkDefault "${state}-provider";
        }
        (mkIf (provides "cert") {
          cert.issuingCertificate = mkDefault "${state}-provider/cert/issuing.crt";
        })
        (mkIf (provides "federation" && any (n: n.id == "jwt-keys") manifest.needs) {
          federation.keys = mkDefault "${state}/needs/jwt-keys/current/jwks.json";
        })
        (mkIf (provides "token" && any (n: n.id == "jwt-keys") manifest.needs) {
          token.keys = mkDefault "${state}/needs/jwt-keys/current/jwks.json";
        })
        (mkIf (provides "file") { file.dir = mkDefault "${state}-provider/file/files"; })
        (mkIf (provides "jwt") { jwt.listen = mkDefault "127.0.0.1:5557"; })
        (mkIf (provides "oidc") { oidc.listen = mkDefault "127.0.0.1:5556"; })
        (mkIf (cfg.usersFile != null) {
          oidc.users = mkDefault "/run/credentials/${florete.unit "provider-oidc.service"}/users";
        })
      ];
      units = florete.defaults isProvider {
        inherit (cfg) package;
        settings.provider = cfg.settings;
        etcd = "${pkgs.etcd}/bin/etcd";
        credentials = lib.optionalAttrs (cfg.usersFile != null) {
          oidc = {
            users = cfg.usersFile;
          }
          // lib.mapAttrs' (name: lib.nameValuePair "connector-${name}") cfg.connectorSecrets;
        };
      };
    };

    environment.etc."${florete.prefix}/provider.hujson" = mkIf (policy != null) {
      source = format.generate "provider.hujson" cfg.settings;
    };
    networking.firewall.allowedTCPPorts = mkIf (policy != null && cfg.openFirewall) (
      lib.unique (
        map florete.port (
          lib.concatMap (p: p.listen) (lib.attrValues policy.provider)
          ++ lib.optionals (member != null) (member.clients.listen ++ member.peers.listen)
        )
      )
    );
  };
}
