# A host of the scenarios: the product's module, and the programs of the scripts. named contains the
# revisions in a script. The host begins with the first one that contains it.
{
  florete,
  revisions,
  named,
  keys,
  facts,
  programs,
}:
name:
{
  config,
  lib,
  pkgs,
  ...
}:
let
  inherit (lib)
    filter
    genAttrs
    head
    mkDefault
    mkIf
    optionalAttrs
    tail
    ;
  python = "${pkgs.python3}/bin/python3";

  answers = port: user: {
    wantedBy = lib.optional (user == null) "multi-user.target";
    serviceConfig = {
      ExecStart = "${python} ${programs}/answer.py ${toString port} ${name'}";
    }
    // (if user == null then { DynamicUser = true; } else { User = user; });
  };
  name' = "%p";

  mine = filter (revision: revisions.${revision}.manifests ? ${name}) named;
  first = head mine;

  deploy = pkgs.writeShellScriptBin "deploy" ''
    set -eu
    system=/run/booted-system
    [ "$1" = ${first} ] || system=$system/specialisation/$1
    $system/bin/switch-to-configuration test
    [ -d /srv/published ] || exit 0
    until [ -e /var/lib/florete-provider/config/state.db ] && [ -e /var/lib/florete/documents/current/policy.json ]; do sleep 0.1; done
    flor-provider import < "/srv/published/$1.json" 2> /run/publish || grep 'hosts never go back' /run/publish
  '';
in
{
  imports = [ florete.nixosModules.default ];

  services.florete = {
    cluster = mkDefault revisions.${first};
    host.openFirewall = true;
    # Root owns the file: the provider's directory belongs to an account that systemd creates.
    provider = mkIf (name == "drhorrible") { usersFile = "/var/lib/users.hujson"; };
    needs = mkIf (name == "ursula") { outline.oidc.units = [ "outline.service" ]; };
  };
  specialisation = genAttrs (tail mine) (revision: {
    configuration.services.florete.cluster = revisions.${revision};
  });

  networking = {
    hostName = name;
    firewall.allowedUDPPorts = lib.optional (name == "drhorrible") 123;
    interfaces.eth1.ipv4.addresses = lib.mkForce [
      {
        address = facts.addresses.${name};
        prefixLength = 24;
      }
    ];
  };
  users.users = {
    alice.isNormalUser = true;
    outline = {
      isSystemUser = true;
      group = "outline";
    };
  };
  users.groups.outline = { };

  environment.systemPackages = [
    deploy
    pkgs.curl
    pkgs.openssl
    pkgs.python3
    pkgs.iproute2
    pkgs.nftables
  ];
  # Corrects a wrong clock.
  services.timesyncd = {
    enable = name == "ursula";
    servers = [ facts.addresses.drhorrible ];
  };

  systemd.tmpfiles.rules = [
    "d /etc/ssh 0755"
    "C /etc/ssh/ssh_host_ed25519_key 0600 root root - ${keys}/ssh/${name}"
    "C /etc/ssh/ssh_host_ed25519_key.pub 0644 root root - ${keys}/ssh/${name}.pub"
    "C /etc/ssh/next 0600 root root - ${keys}/ssh/next"
    "C /etc/ssh/next.pub 0644 root root - ${keys}/ssh/next.pub"
    "L+ /usr/local/lib/scenarios - - - - ${programs}"
  ]
  ++ lib.optionals (name == "mgmt01") [
    "C /srv/operator - - - - ${keys}/operator"
    "Z /srv/operator ~0700 root root"
  ]
  ++ lib.optional (name == "drhorrible") "L+ /srv/published - - - - ${keys}/published"
  ++ lib.optional (name == "drhorrible") "f /var/lib/users.hujson 0600 root root - []";

  systemd.services = {
    whole = {
      unitConfig = {
        ConditionPathExists = "/var/lib/florete";
        RequiresMountsFor = "/var/lib/florete";
      };
      before = [ "florete-activate.service" ];
      wantedBy = [ "multi-user.target" ];
      path = [ pkgs.openssl ];
      serviceConfig = {
        Type = "oneshot";
        RemainAfterExit = true;
      };
      script = "${python} ${programs}/whole.py > /run/whole.json";
    };
  }
  // optionalAttrs (name == "mgmt01") { metrics = answers 9090 null; }
  // optionalAttrs (name == "ursula") {
    wiki = answers 4655 null;
    outline = answers 4654 "outline" // {
      wantedBy = [ config.services.florete.needs.outline.oidc.target ];
    };
  };
}
