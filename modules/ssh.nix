# Logins over SSH with certificates: by users of this host, and on this host.
{
  florete,
  lib,
  pkgs,
  ...
}:
let
  inherit (lib)
    any
    literalExpression
    mkIf
    mkOption
    optionalString
    types
    ;
  inherit (florete.manifest) forwarder needs trustDomain;
  inherit (florete) cfg;

  flor = "${cfg.host.package}/bin/flor";
  # sshd runs no program below a directory that a group can write to, such as the Nix store.
  asked = "${florete.prefix}/flor-for-sshd";

  recorded = any (p: p ? record) forwarder.publish;

  # A line that includes what a command of flor prints, which names a program.
  included =
    program: command:
    let
      instance = optionalString (florete.instance != "") " --instance=${florete.instance}";
    in
    "Include ${
      pkgs.runCommand "${florete.prefix}-ssh.conf" { } "${flor}${instance} ssh ${command} --program=${program} > $out"
    }\n";
in
{
  options.services.${florete.prefix}.ssh = {
    client = mkOption {
      type = types.bool;
      default = florete.known && any (r: r ? hostKeys) forwarder.reach;
      defaultText = literalExpression "whether this host reaches an SSH service";
      description = ''
        Whether `ssh` on this host knows the host keys of the cluster's SSH services, and presents the
        certificates of the users there.
      '';
    };
    server = mkOption {
      type = types.bool;
      default = florete.known && any (n: n.id == "ssh-keys") needs;
      defaultText = literalExpression "whether a role permits logins on this host";
      description = ''
        Whether the sshd of this host accepts the certificates of users, as the accounts that their roles
        name. It does so only in connections that the forwarder brings. If a service of this host
        records sessions, it accepts nothing else there.
      '';
    };
  };

  config = {
    programs.ssh.extraConfig = mkIf cfg.ssh.client (
      included flor "client-config --trust-domain=${trustDomain}"
    );
    services.openssh.extraConfig = mkIf cfg.ssh.server (
      included "/etc/${asked}" "server-config${optionalString recorded " --recorded"}"
    );
    environment.etc.${asked} = mkIf cfg.ssh.server {
      mode = "0755"; # a file, and no link into the store
      source = pkgs.writeScript "flor-for-sshd" ''
        #!${pkgs.runtimeShell}
        exec ${flor} "$@"
      '';
    };
  };
}
