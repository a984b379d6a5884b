# The policy of a provider host: every need that names it, as a grant to the node
# that has the need, with the need's very request and generation, and the SSH host keys
# of those nodes.
{
  topology,
  access,
  needs,
  rollout,
}:
let
  inherit (builtins)
    attrNames
    attrValues
    concatMap
    elem
    filter
    groupBy
    listToAttrs
    map
    mapAttrs
    ;
  inherit (import ./lib.nix) optionalAttrs toSet;
  inherit (import ./reserved.nix) writes;
  inherit (import ./names.nix) cache control;
  t = topology;
  store = import ./store.nix topology;

  # provider → grants. Hosts and needs come sorted, so the grants are.
  grants = mapAttrs (_: map (g: g.grant)) (
    groupBy (g: g.provider) (
      concatMap (
        host:
        concatMap (
          need:
          map (provider: {
            inherit provider;
            grant = {
              caller = host.id;
              need = need.id;
              inherit (need) kind request generation;
            };
          }) need.providers
        ) needs.${host.name}
      ) (attrValues t.hosts)
    )
  );

  # provider → nodes that it grants something.
  devices = mapAttrs (_: map (d: d.device)) (
    groupBy (d: d.provider) (
      concatMap (
        host:
        map (provider: {
          inherit provider;
          device = import ./device.nix host;
        }) (attrNames (groupBy (provider: provider) (concatMap (need: need.providers) needs.${host.name})))
      ) (attrValues t.hosts)
    )
  );

  settings = mapAttrs (_: k: (k.policy or (_: { })) t) t.kinds;

  # Those who reach a reserved service, and what they may do there.
  operators =
    service:
    let
      writing = filter (r: writes service t.roles.${r}) (attrNames t.roles);
      writers = toSet (concatMap (r: access.holders.${r}) writing);
    in
    map (
      id:
      {
        inherit id;
        access = if writers ? ${id} then "write" else "read";
      }
      // optionalAttrs (writers ? ${id}) (access.ending writing id)
    ) access.allow.${service};
  operatorsOf = {
    operators = operators control;
    cache = operators cache;
  };
  serves = host: service: t.services ? ${service} && elem "config" host.kinds;

  providers = toSet (concatMap (p: p.hosts) (attrValues t.providers));
in
{
  # The hosts that provide.
  # providers :: { hostName = null; }
  inherit providers;
  # The policy of one of them.
  # of :: hostName -> Policy
  of =
    name:
    let
      host = t.hosts.${name};
    in
    {
      cluster = t.name;
      host = name;
      inherit (t) trustDomain trust;
      provider = mapAttrs (_: p: { inherit (p) id listen; }) host.provider;
      devices = devices.${name} or [ ];
      kinds = listToAttrs (
        map (kind: {
          name = kind;
          value = settings.${kind};
        }) host.kinds
      );
      grants = grants.${name} or [ ];
    }
    // optionalAttrs (serves host control) { inherit (operatorsOf) operators; }
    // optionalAttrs (serves host cache) { inherit (operatorsOf) cache; }
    // optionalAttrs (rollout != null && elem "config" host.kinds) { inherit rollout; }
    // store host;
}
