# Collects the facts that hosts and services publish for other configurations. For each fact, the
# result contains the hosts and services that have it, with their values.
# Topology -> { <fact> = { hosts.<name> = value; services.<name> = value; }; }
t:
let
  inherit (builtins)
    attrNames
    attrValues
    filter
    mapAttrs
    ;
  inherit (import ../lib) genAttrs invert;

  by =
    things:
    mapAttrs (
      fact: names: genAttrs names (name: things.${name}.facts.${fact})
    ) (invert (e: attrNames e.facts) (filter (e: e.facts != { }) (attrValues things)));
  hosts = by t.hosts;
  services = by t.services;
in
mapAttrs (fact: _: {
  hosts = hosts.${fact} or { };
  services = services.${fact} or { };
}) (hosts // services)
