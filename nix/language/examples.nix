# Finds an example value for an attribute. This is the example for the attribute's name if the
# attribute's type accepts that value, and otherwise the example for its format. Attributes of
# records contain their own examples.
# String -> About -> { example :: Any; } | { }
let
  inherit (builtins)
    all
    attrValues
    elem
    isAttrs
    isList
    ;

  # Names of other things, numbers and free text, for which formats have no example.
  named = {
    scalar = {
      base = "ou=groups,dc=example,dc=org";
      bindDN = "cn=florete,dc=example,dc=org";
      bytesPerSecond = 50000000;
      capacity = 8;
      cluster = "blue";
      connections = 2000;
      default = "wiki@example.org";
      filter = "(objectClass=person)";
      groups = "groups";
      host = "forge";
      hsts = 31536000;
      length = 32;
      listenPort = 80;
      maxBody = 100;
      opensPerSecond = 20;
      percent = 25;
      port = 8080;
      rev = "8eeec93";
      serial = 1784011430;
      service = "wiki";
      session = 12;
      timeout = 3600;
      title = "Example Inc.";
      who = "alice";
    };
    list = {
      aliases = [ "docs" ];
      allowedGroups = [ "staff" ];
      apart = [ "search" ];
      apartByGroup = [ "db" ];
      approve = [ "leads" ];
      by = [ "ops" ];
      capabilities = [ "gpu" ];
      days = [
        "sat"
        "sun"
      ];
      dependsOn = [ "cert-node" ];
      except = [ "vault" ];
      from = [ "forge" ];
      hosts = [
        "forge"
        "anvil"
      ];
      keeps = [ "search" ];
      namespaces = [ "payments" ];
      near = [ "forge" ];
      not = [ "vault" ];
      pins = [ "forge" ];
      reaches = [ "wiki" ];
      relays = [
        "gate"
        "anvil"
      ];
      requires = [ "gpu" ];
      roles = [ "reader" ];
      scopes = [ "groups" ];
      serviceGroups = [ "monitoring" ];
      services = [ "wiki" ];
      teams = [ "night" ];
      tlsAliases = [ "docs.example.net" ];
      users = [ "alice" ];
      verifies = [ "acme" ];
    };
    attrs = {
      callers."service/wiki" = [ "wiki.service" ];
      claims.roles = "groups";
      facts.metrics = 9100;
      groups.editor = [ "writers" ];
      hosts.forge = [ "192.0.2.1:4603" ];
      networks.home = "10.0.0.5";
      nodes.forge = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB9E5k5185SOn3P436lHIcTOjLtPJlxHkMcCstQc+/J1";
      paths."/admin".from = [ "10.0.0.0/8" ];
      ports = {
        http = 80;
        metrics = 9100;
      };
      publicPorts = {
        imaps = 993;
        smtp = 25;
      };
      redirects."www.example.org" = "example.org";
      request.address = "wiki@example.org";
      serviceGroups.monitoring = [ "metrics" ];
      until.reader = "2027-01-31";
      logins.shell = [ "deploy" ];
      usersUntil.alice = "2027-01-31";
    };
  };

  right =
    about: v:
    if about ? short && about.short.ok v then
      true
    else if about.kind == "scalar" then
      about.ok v
    else if about.kind == "enum" then
      elem v about.choices
    else if about.kind == "list" then
      isList v && all (right about.of) v
    else if about.kind == "attrs" then
      isAttrs v && all (right about.of) (attrValues v)
    else
      false;

  ofFormat =
    about:
    if about ? example then
      { inherit (about) example; }
    else if about.kind == "list" && ofFormat about.of != { } then
      { example = [ (ofFormat about.of).example ]; }
    else
      { };
in
name: about:
let
  example = named.${about.kind}.${name} or null;
in
if example != null && right about example then { inherit example; } else ofFormat about
