# What of a topology concerns one host: itself and what runs on it, whom it calls,
# who provides for it, and the roles and groups that decide about that. Services that
# nobody knows where to run concern every host: they may be meant for this one.
{ clean, topology, access }:
let
  inherit (builtins)
    attrNames
    attrValues
    concatMap
    listToAttrs
    map
    ;
  t = topology;
  set = list: listToAttrs (map (name: { inherit name; value = null; }) list);
in
name:
let
  host = t.hosts.${name};
  reached = attrValues access.reached.${name};
  providers = concatMap (p: p.hosts) (attrValues t.providers);
  own = host.services ++ t.adrift;

  services = set (own ++ map (i: i.service) reached);
  users = set (host.users ++ clean.hosts.${name}.users);
  held = host.roles ++ concatMap (u: t.users.${u}.roles) host.users ++ concatMap (s: t.services.${s}.roles) host.services;
  roles = set (held ++ concatMap (s: access.leading.${s} or [ ]) own);
  serviceGroups = set (concatMap (r: t.roles.${r}.serviceGroups) (attrNames roles));

  meant = { inherit roles serviceGroups services users; hosts = set ([ name ] ++ providers); };
in
{
  # What must be right about it and, where it calls, what must be written right.
  inherit meant;
  written = meant // { hosts = meant.hosts // set (concatMap (i: i.on) reached); };
}
