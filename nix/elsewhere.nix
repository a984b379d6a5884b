# Services of other clusters in roles and groups of services: "tickets@blue" is the service tickets
# of federated.blue. Roles that name it lead to it as those do that it names itself; nothing that
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
  inherit (import ./lib.nix) sorted;

  elsewhere = listToAttrs (
    concatMap (
      cluster:
      map (service: {
        name = "${service}@${cluster}";
        value = { inherit cluster service; };
      }) (attrNames clean.federated.${cluster}.services)
    ) (attrNames clean.federated)
  );
  isHere = n: !elsewhere ? ${n};

  named = role: role.services ++ concatMap (g: clean.serviceGroups.${g} or [ ]) role.serviceGroups;
  leading = mapAttrs (_: role: filter (n: elsewhere ? ${n}) (named role)) clean.roles;
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
    federated = mapAttrs (
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
    ) clean.federated;
  }
