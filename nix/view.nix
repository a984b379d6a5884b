# The topology as data: what topology.nix made of it, without functions. Other
# programs read it (florctl plan, explain, graph), so names here are stable.
t:
let
  inherit (builtins) any filter intersectAttrs listToAttrs map mapAttrs;

  names = import ./names.nix;
  only = names:
    let set = listToAttrs (map (name: { inherit name; value = null; }) names); in
    intersectAttrs set;
  # Where a service leads out of its hosts, "" for those that run there.
  outside = s:
    let machine = names.machine s.upstream; in
    if machine == null || any (h: t.hosts.${h}.address == machine) s.hosts then "" else s.upstream;
  known = set: filter (n: set ? ${n});
in
{
  inherit (t) name trustDomain;
  trust = { domain = t.trustDomain; inherit (t.trust) keys roots; };

  # A host without an address is called by nobody.
  hosts = mapAttrs
    (_: h: only [ "address" "capabilities" "deploy" "forwarderAddress" "forwarderPort" "group" "id" "kind" "kinds" "membership" "providerAddress" "providerPort" "roles" "services" "sshHostKey" "system" "tags" "users" ] h
      // (if h.address == "" then { forwarderAddress = ""; providerAddress = ""; } else { }))
    t.hosts;

  services = mapAttrs
    (_: s: only [ "hosts" "listenPort" "placement" "port" "protocol" "published" "replicas" "roles" "scope" "sso" "tlsName" "upstream" "user" "visibility" ] s
      // {
        files = mapAttrs (_: only [ "after" "generation" "mode" "ref" "restart" ]) s.files;
        ids = map (i: i.name) s.instances;
        outside = outside s;
      })
    t.services;

  users = mapAttrs (_: only [ "hosts" "id" "roles" ]) t.users;

  roles = mapAttrs
    (_: r: { groups = known t.groups r.groups; services = known t.services r.services; })
    t.roles;
  groups = mapAttrs (_: known t.services) t.groups;
  inherit (t) providers;
}
