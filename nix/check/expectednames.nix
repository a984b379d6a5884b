# What the names in `expect` stand for: who, which services, and which instances of these.
# { access, clean, lib, t, … } -> { barred, keys, meant, named, parts, reserved, sections, serviceOf }
{
  access,
  clean,
  lib,
  t,
  ...
}:
let
  inherit (builtins)
    any
    attrNames
    concatMap
    elem
    elemAt
    filter
    head
    match
    ;
  inherit (import ../lib) toSet;
  inherit (lib) unknown when;
  constants = (import ../lib/constants.nix).spiffe;
  gate = import ../resolve/gate.nix;
  names = import ../lib/names.nix;

  # Parts of services that no role names are parts too.
  parts = (import ../resolve/part.nix).parts {
    clean = clean // {
      roles.expected = {
        services = concatMap (e: e.reaches ++ e.not) clean.expect;
        except = [ ];
        logins = { };
      };
      serviceGroups = { };
    };
    inherit (t) hosts outward services;
  };
  named =
    (import ./named.nix {
      t = t // {
        inherit parts;
      };
      inherit unknown;
    }).parts;

  # The group of services through which roles lead to a reserved service.
  reserved = {
    ${names.cache} = constants.cacheGroup;
    ${names.control} = constants.controlGroup;
  };

  # The keys of the instances that the name of a service stands for, none if it is unknown.
  keys =
    n:
    let
      part = parts.${n};
      ids = toSet part.ids;
      other = t.elsewhere.${n};
      domain = t.federated.${other.cluster}.trustDomain or t.trustDomain;
    in
    if t.services ? ${n} then
      map (i: i.name) t.services.${n}.reachables
    else if t.elsewhere ? ${n} then
      [ (names.id domain "service/${other.service}") ]
    else if parts ? ${n} then
      map (i: i.name) (
        filter (
          i: ids ? ${i.value.entry.id} && (part.port == null || i.value.entry.port or null == part.port)
        ) t.services.${part.service}.reachables
      )
    else
      [ ];

  sections = {
    node = "hosts";
    service = "services";
    user = "users";
  };
  # The service that a name stands for, or that it is a part of.
  serviceOf = n: parts.${n}.service or n;

  # The instances of a service at which its gate refuses a principal, by key. Inside the cluster, a
  # gate admits users and its ingresses.
  barred =
    p: n:
    let
      s = t.services.${serviceOf n} or null;
      ids =
        if p.type == "node" then
          [ t.hosts.${p.name}.id ]
        else
          concatMap t.services.${p.name}.idsOn t.services.${p.name}.hosts;
      ingresses = gate.ingresses (t // { inherit access; }) s;
    in
    if s == null || p.type == "user" || any (id: elem id ingresses) ids then
      { }
    else
      toSet (map (i: i.name) (gate.guarded s));

  # { type, name } of each principal that `who` may mean.
  meant =
    who:
    let
      written = match "(node|service|user)/(.*)" who;
      group = match "group/(.+)" who;
      as =
        type: name:
        when (clean.${sections.${type}} ? ${name}) [ { inherit type name; } ];
    in
    if group != null then
      [
        {
          type = "group";
          name = head group;
        }
      ]
    else if written != null then
      as (head written) (elemAt written 1)
    else
      concatMap (type: as type who) (attrNames sections);
in
{
  inherit
    barred
    keys
    meant
    named
    parts
    reserved
    sections
    serviceOf
    ;
}
