# A host of the scenarios: the product's module, and what a script finds on it.
{ florete, revisions, keys, facts, programs }:
name:
{ config, lib, pkgs, ... }:
let
  inherit (lib) mapAttrs mkDefault mkIf optionalAttrs;
  python = "${pkgs.python3}/bin/python3";

  answers = port: user: {
    wantedBy = lib.optional (user == null) "multi-user.target";
    serviceConfig = { ExecStart = "${python} ${programs}/answer.py ${toString port} ${name'}"; } // (if user == null then { DynamicUser = true; } else { User = user; });
  };
  name' = "%p";

  deploy = pkgs.writeShellScriptBin "deploy" ''
    set -eu
    [ ! -d /srv/published ] || flor-provider publish < "/srv/published/$1.json" 2> /run/publish || grep 'hosts never go back' /run/publish
    system=/run/booted-system
    [ "$1" = base ] || system=$system/specialisation/$1
    exec $system/bin/switch-to-configuration test
  '';
in
{
  imports = [ florete.nixosModules.default ];

  services.florete = {
    cluster = mkDefault revisions.base;
    host.openFirewall = true;
    provider = mkIf (name == "drhorrible") { settings.oidc.users = "/var/lib/florete-provider/users.hujson"; };
    needs = mkIf (name == "ursula") { outline.oidc.units = [ "outline.service" ]; };
  };
  specialisation = mapAttrs (_: cluster: { configuration.services.florete.cluster = cluster; }) (lib.filterAttrs (revision: cluster: revision != "base" && cluster.manifests ? ${name}) revisions);

  networking = {
    hostName = name;
    firewall.allowedUDPPorts = lib.optional (name == "drhorrible") 123;
    interfaces.eth1.ipv4.addresses = lib.mkForce [ { address = facts.addresses.${name}; prefixLength = 24; } ];
  };
  users.users = {
    alice.isNormalUser = true;
    outline = { isSystemUser = true; group = "outline"; };
  };
  users.groups.outline = { };

  environment.systemPackages = [ deploy pkgs.curl pkgs.openssl pkgs.python3 pkgs.iproute2 pkgs.nftables ];
  # What a wrong clock is set by.
  services.timesyncd = { enable = name == "ursula"; servers = [ facts.addresses.drhorrible ]; };

  systemd.tmpfiles.rules = [
    "d /etc/ssh 0755"
    "C /etc/ssh/ssh_host_ed25519_key 0600 root root - ${keys}/ssh/${name}"
    "C /etc/ssh/ssh_host_ed25519_key.pub 0644 root root - ${keys}/ssh/${name}.pub"
    "C /etc/ssh/next 0600 root root - ${keys}/ssh/next"
    "C /etc/ssh/next.pub 0644 root root - ${keys}/ssh/next.pub"
    "L+ /usr/local/lib/scenarios - - - - ${programs}"
  ]
  ++ lib.optionals (name == "mgmt01") [ "C /srv/operator - - - - ${keys}/operator" "Z /srv/operator ~0700 root root" ]
  ++ lib.optional (name == "drhorrible") "L+ /srv/published - - - - ${keys}/published"
  ++ lib.optional (name == "drhorrible") "f /var/lib/florete-provider/users.hujson 0600 root root - []";

  systemd.services = {
    whole = {
      unitConfig = { ConditionPathExists = "/var/lib/florete"; RequiresMountsFor = "/var/lib/florete"; };
      before = [ "florete-activate.service" ];
      wantedBy = [ "multi-user.target" ];
      path = [ pkgs.openssl ];
      serviceConfig = { Type = "oneshot"; RemainAfterExit = true; };
      script = "${python} ${programs}/whole.py > /run/whole.json";
    };
  }
  // optionalAttrs (name == "mgmt01") { metrics = answers 9090 null; }
  // optionalAttrs (name == "ursula") {
    wiki = answers 4655 null;
    outline = answers 4654 "outline" // { wantedBy = [ config.services.florete.needs.outline.oidc.target ]; };
  };
}
