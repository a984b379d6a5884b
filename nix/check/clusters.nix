# Faults of other clusters in this trust domain: an identity belongs to one cluster only.
{
  clean,
  lib,
  t,
  ...
}@arguments:
let
  inherit (builtins)
    attrNames
    concatMap
    elemAt
    filter
    mapAttrs
    match
    ;
  inherit (lib)
    attribute
    fault
    faultIf
    show
    twice
    ;
  inherit (import ../lib) toSet;
  elsewhere = import ./elsewhere.nix arguments;
  places = n: "clusters.${attribute n}";

  # The attribute that declares an identity here, by its path below the trust domain, or null.
  # owner :: path -> String | null
  owner =
    path:
    let
      part = match "([^/]*)/(([^/]*)/)?([^/]*)" path;
      kind = elemAt part 0;
      host = elemAt part 2;
      name = elemAt part 3;
      found = condition: place: if condition then place else null;
      s = clean.services.${name};
    in
    if part == null then
      null
    else if kind == "user" then
      found (clean.users ? ${name}) "users.${name}"
    else if kind == "node" then
      found (clean.hosts ? ${name}) "hosts.${name}"
    else if host == null then
      found (clean.services ? ${name} && s.scope != "node") "services.${name}"
    else if match "${(import ../lib/constants.nix).spiffe.reservedPrefix}.*" name != null then
      found (clean.hosts ? ${host}) "hosts.${host}"
    else
      found (
        clean.hosts ? ${host} && clean.services ? ${name} && s.scope != "cluster"
      ) "services.${name}";

  again =
    place: path: of:
    map (
      mine:
      fault {
        id = "FL138";
        inherit place;
        problem = "${mine} is here:";
        value = show path;
        remedy = "if both are the same, give it roles there and take this out, else give one of them another name: nobody can distinguish them";
      }
    ) (filter (mine: mine != null) of);

  each =
    n: c:
    let
      place = places n;
    in
    elsewhere n place c
    ++ faultIf (n == clean.name || clean.federated ? ${n}) {
      id = "FL146";
      inherit place;
      problem =
        if n == clean.name then "this cluster itself is called" else "federated.${attribute n} is another one called";
      value = show n;
      remedy = "call each by a name of its own, so that \"wiki@${n}\" is one thing";
    }
    ++ concatMap (
      path: again "${place}.identities.${attribute path}" path [ (owner path) ]
    ) (attrNames c.identities)
    ++ concatMap (
      path:
      again "${place}.services.${attribute path}" "service/${path}" [
        (owner "service/${path}")
        # Callers would reach the service with that alias by the same name.
        (if t.aliases ? ${path} then "services.${t.aliases.${path}}, whose alias it is," else null)
      ]
    ) (attrNames c.services)
    ++ concatMap (
      path: again "${place}.clients.${attribute path}" "service/${path}" [ (owner "service/${path}") ]
    ) (attrNames c.clients);

  # An identity belongs to only one of the other clusters.
  all = concatMap (
    n:
    map (path: {
      inherit n path;
    }) (
      attrNames (
        clean.clusters.${n}.identities
        // services clean.clusters.${n}.services
        // services clean.clusters.${n}.clients
      )
    )
  ) (attrNames clean.clusters);
  services = of: toSet (map (s: "service/${s}") (attrNames of));
in
{
  top = twice {
    id = "FL138";
    key = e: e.path;
    place = e: places e.n;
    problem = first: "clusters.${first.n} has the identity";
    remedy = "declare each where it is, once";
    what = e: e;
  } all;
  clusters = mapAttrs each clean.clusters;
}
