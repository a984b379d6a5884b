# Faults of a declaration of another cluster: its identities with roles, and its services that roles
# lead to.
# { clean, lib } -> name -> place -> { identities, services, … } -> [Fault]
{ clean, lib }:
let
  inherit (builtins)
    any
    attrNames
    attrValues
    concatMap
    elem
    split
    ;
  inherit (lib)
    attribute
    fault
    reserved
    role
    show
    when
    ;
  inherit (import ../language/formats) isIdentity;

  # Reports whether s@n is also a part of a service.
  isPart =
    n: s:
    clean.services ? ${s}
    && clean.services.${s}.scope != "cluster"
    && (
      clean.hosts ? ${n}
      || clean.hostGroups ? ${n}
      || any (h: elem n h.tags || elem n (split "/" h.group)) (attrValues clean.hosts)
      || any (g: elem n g.tags) (attrValues clean.hostGroups)
    );
  named =
    name:
    any (r: elem name r.services || elem name r.except) (attrValues clean.roles)
    || any (elem name) (attrValues clean.serviceGroups);
in
n: place: f:
concatMap (
  i:
  let
    at = "${place}.identities.${attribute i}";
    of = f.identities.${i}.roles;
  in
  when (!isIdentity i) [
    (fault {
      id = "FL004";
      place = at;
      problem = "no identity of a trust domain:";
      value = show i;
      remedy = "write what follows the trust domain in its SPIFFE ID: \"user/alice\", \"service/backup\", \"service/forge/backup\" or \"node/forge\"";
    })
  ]
  ++ role "${at}.roles" of
  ++ concatMap (r: when (elem r of) [ (reserved "${at}.roles" r) ]) [
    "node"
    "operator"
  ]
) (attrNames f.identities)
++ concatMap (
  s:
  let
    at = "${place}.services.${attribute s}";
  in
  when (!isIdentity "service/${s}") [
    (fault {
      id = "FL004";
      place = at;
      problem = "no service of a trust domain:";
      value = show s;
      remedy = "write what follows service/ in its SPIFFE ID: \"wiki\", or \"forge/wiki\"";
    })
  ]
  ++ role "${at}.roles" f.services.${s}.roles
  ++ when (isPart n s && named "${s}@${n}") [
    (fault {
      id = "FL136";
      place = at;
      problem = "${show "${s}@${n}"} also means the part of a service here, by the name";
      value = show n;
      remedy = "call ${place} something that no host, group of hosts or tag is called";
    })
  ]
) (attrNames f.services)
