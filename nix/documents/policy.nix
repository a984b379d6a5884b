# The policy of a provider host: a grant for every need that names the host as a provider, with the
# request and generation of the need, and the SSH host keys of the nodes.
{
  topology,
  access,
  needs,
  rollout,
}:
let
  inherit (builtins)
    any
    attrNames
    attrValues
    concatMap
    elem
    filter
    groupBy
    head
    listToAttrs
    mapAttrs
    sort
    tail
    toJSON
    ;
  inherit (import ../lib)
    only
    optionalAttrs
    sorted
    toSet
    ;
  inherit (import ../resolve/reserved.nix) writes;
  inherit (import ../lib/names.nix) cache control;
  t = topology;
  device = import ./device.nix;
  store = import ./store.nix topology;

  hosts = attrValues t.hosts;

  # Hosts and needs are sorted, so the grants are sorted too.
  own = concatMap (
    host:
    map (need: {
      caller = host.id;
      need = need.id;
      inherit (need) kind request generation;
    }) (filter isHere needs.${host.name})
  ) hosts;
  # Reports whether providers of this cluster answer the requests for a need.
  isHere = need: need.providers == t.providers.${need.kind}.hosts;
  # Grants to nodes of other clusters, with the keys of these nodes.
  others = concatMap (kind: map (g: g // { inherit kind; }) ((t.kinds.${kind}.granted or (_: [ ])) t)) (
    attrNames t.kinds
  );
  grants =
    if others == [ ] then
      own
    else
      sort (a: b: a.caller < b.caller || a.caller == b.caller && a.need < b.need) (
        own ++ map (o: o.grant // { inherit (o) kind; }) others
      );
  # Adds the nodes of other clusters that have grants of some kinds. A host here can be one of them.
  withOthers =
    kinds: devices:
    let
      here = toSet (map (d: d.id) devices);
      more = listToAttrs (
        map (o: {
          name = o.grant.caller;
          value = {
            id = o.grant.caller;
            inherit (o) sshHostKey;
          };
        }) (filter (o: elem o.kind kinds && !here ? ${o.grant.caller}) others)
      );
    in
    if others == [ ] then devices else sort (a: b: a.id < b.id) (devices ++ attrValues more);
  grantsOf = groupBy (g: g.kind) grants;

  # The grants and nodes for a set of kinds. Hosts that provide the same kinds share them.
  answering = mapAttrs (_: same: answer (head same).kinds) (
    groupBy (host: toJSON host.kinds) (filter (host: host.kinds != [ ]) hosts)
  );
  answer = kinds: {
    grants =
      if tail kinds == [ ] then
        grantsOf.${head kinds} or [ ]
      else
        filter (g: elem g.kind kinds) grants;
    devices = withOthers kinds (
      map device (
        filter (host: any (need: elem need.kind kinds && isHere need) needs.${host.name}) hosts
      )
    );
  };

  settings = mapAttrs (_: k: (k.policy or (_: { })) t) t.kinds;

  # The identities that reach a reserved service, and whether they may write there.
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
  # Who may request a role for some hours, who may approve that, and which hosts get the grants.
  requests = mapAttrs (
    role: rule:
    rule
    // {
      by = access.latent.requesters role;
      hosts = sorted (concatMap (i: i.on) (attrValues access.byRole.${role}));
    }
  ) (access.latent.rules (attrNames t.requests));
  serves = host: service: t.services ? ${service} && elem "config" host.kinds;

  providers = toSet (concatMap (p: p.hosts) (attrValues t.providers));
in
{
  # The provider hosts.
  # providers :: { hostName = null; }
  inherit providers;
  # The policy of a provider host.
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
      inherit (answering.${toJSON host.kinds}) devices grants;
      kinds = only host.kinds settings;
    }
    // optionalAttrs (serves host control) { inherit (operatorsOf) operators; }
    // optionalAttrs (serves host control && t.requests != { }) { inherit requests; }
    // optionalAttrs (serves host cache) { inherit (operatorsOf) cache; }
    // optionalAttrs (rollout != null && elem "config" host.kinds) { inherit rollout; }
    // store host;
}
