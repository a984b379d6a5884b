# Collects the facts that hosts and services publish for other configurations. For each fact, the
# result contains the hosts and services that have it, with their values.
# Topology -> { <fact> = { hosts.<name> = value; services.<name> = value; }; }
t:
let
  inherit (builtins)
    attrNames
    attrValues
    filter
    listToAttrs
    mapAttrs
    ;
  inherit (import ../lib) invert;

  by =
    things:
    mapAttrs (
      fact: names:
      listToAttrs (
        map (name: {
          inherit name;
          value = things.${name}.facts.${fact};
        }) names
      )
    ) (invert (e: attrNames e.facts) (filter (e: e.facts != { }) (attrValues things)));
  hosts = by t.hosts;
  services = by t.services;
in
mapAttrs (fact: _: {
  hosts = hosts.${fact} or { };
  services = services.${fact} or { };
}) (hosts // services)
