# Services of other clusters in roles and groups of services: "tickets@blue" is the service tickets
# of federated.blue or clusters.blue. Roles that name it lead to it as those do that it names itself; nothing that
# follows parts of services sees such names. `elsewhere` has all that there are.
# clean topology -> clean topology
clean:
let
  inherit (builtins)
    all
    any
    attrNames
    attrValues
    concatLists
    concatMap
    elem
    filter
    listToAttrs
    map
    mapAttrs
    ;
  inherit (import ../lib) sorted;

  of =
    all:
    concatMap (
      cluster:
      map (service: {
        name = "${service}@${cluster}";
        value = { inherit cluster service; };
      }) (attrNames all.${cluster}.services)
    ) (attrNames all);
  elsewhere = listToAttrs (of clean.clusters ++ of clean.federated);
  isHere = n: !elsewhere ? ${n};

  named = role: role.services ++ concatMap (g: clean.serviceGroups.${g} or [ ]) role.serviceGroups;
  leading = mapAttrs (_: role: filter (n: elsewhere ? ${n}) (named role)) clean.roles;
  led = mapAttrs (
    cluster: f:
    f
    // {
      services = mapAttrs (
        service: s:
        s
        // {
          roles = sorted (
            s.roles ++ filter (r: elem "${service}@${cluster}" leading.${r}) (attrNames clean.roles)
          );
        }
      ) f.services;
    }
  );
  used =
    any (r: !(all isHere r.services)) (attrValues clean.roles)
    || !(all isHere (concatLists (attrValues clean.serviceGroups)));
in
if elsewhere == { } || !used then
  clean // { inherit elsewhere; }
else
  clean
  // {
    inherit elsewhere;
    roles = mapAttrs (_: r: r // { services = filter isHere r.services; }) clean.roles;
    serviceGroups = mapAttrs (_: filter isHere) clean.serviceGroups;
    clusters = led clean.clusters;
    federated = led clean.federated;
  }
