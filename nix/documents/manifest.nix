# host → its manifest, which contains only what the host needs.
# { topology, access, needs, policyOf } -> hostName -> Manifest
{
  topology,
  access,
  needs,
  policyOf,
}:
let
  inherit (builtins)
    all
    attrNames
    concatMap
    elem
    filter
    groupBy
    listToAttrs
    mapAttrs
    partition
    sort
    ;
  address = import ../resolve/address.nix;
  device = import ./device.nix;
  limits = import ../access/limits.nix;
  callerLimits = limits.of { inherit topology access; };
  public = import ../access/entries.nix { inherit topology access; };
  transport = import ../resolve/transport.nix;
  federation = import ../access/federation.nix;
  inherit (import ../lib) optionalAttrs sorted;
  inherit (import ../lib/names.nix) entrance;
  # The units of a host, by instance. The import for most hosts, without an instance, is shared.
  plainUnits = import ../units "";
  unitsOf = host: if host.instance == "" then plainUnits else import ../units host.instance;
  t = topology;

  allowList = import ./allow.nix access;

  gate = import ../resolve/gate.nix;
  gated = t // {
    inherit access;
  };
  named = import ./publicnames.nix t;
  calling = federation.calling t;
  accepted = federation.on t;
  domain = n: t.federated.${n}.trustDomain;
  # The foreign trust domains whose bundles an identity gets from the Workload API.
  federates =
    host: i:
    if !i.workload then
      [ ]
    else
      sorted (
        concatMap (s: map domain (calling.${s.name} or [ ])) (
          filter (s: elem i.id (s.idsOn host.name)) host.running
        )
      );

  reach =
    host:
    let
      reachable = access.reachEntries host;
    in
    if elem "ingress" host.capabilities then
      map (r: if r.port or entrance == entrance then r // (named.${r.id} or (_: { })) host else r) reachable
    else
      reachable;

  publish =
    host:
    let
      published = filter (s: s.published) host.running;
      entries = concatMap (
        s:
        concatMap (
          id:
          map (
            port:
            {
              inherit id;
              allow = allowList s.name id port.key;
            }
            // (
              if t.requests == { } then { } else access.latent.to (access.leadingTo s.name (id + port.key)) id
            )
            // (if t.relaying then access.relayed.published host id else { })
            // s.servedOn host.name port
            // limits.attribute s.limits
            // (
              let
                entrances = public.entrances s port;
              in
              if entrances == [ ] then { } else { inherit entrances; }
            )
            // (if gate.guards s port then gate.published gated s else { })
          ) s.ports
        ) (s.idsOn host.name)
      ) published;
    in
    # Services are sorted by name. IDs are in the same order if none contains the host.
    if all (s: s.scope == "cluster") published then
      entries
    else
      sort (a: b: a.id < b.id) entries;

  forwarder =
    host:
    let
      published = publish host;
      isCalled = published != [ ] || host.relay;
    in
    {
      listen = if isCalled then host.forwarder.listen else [ ];
      publish = published;
      reach = reach host;
      callers = map (
        i:
        let
          caller = {
            inherit (i) id users uids;
          };
        in
        # Most identities have no further attributes.
        if i.units == [ ] && !i.workload then
          caller
        else
          caller
          // optionalAttrs (i.units != [ ]) { inherit (i) units; }
          // optionalAttrs i.workload { inherit (i) workload; }
          // optionalAttrs (federates host i != [ ]) { federates = federates host i; }
      ) access.acting.${host.name};
      socks = access.socks host;
    }
    // (if isCalled then transport.attribute (transport.written [ host.transport ]) else { })
    // (if t.relaying then access.relayed.forwarder host else { })
    // (if host.drainTimeout == 600 then { } else { drain = host.drainTimeout; })
    // optionalAttrs (public.of host != [ ]) { entries = public.of host; }
    // optionalAttrs (callerLimits.entries host != [ ]) { limits = callerLimits.entries host; };

  # The roles for which a host must verify grants.
  requested =
    manifest:
    sorted (concatMap (p: map (l: l.role) (p.latent or [ ])) manifest.forwarder.publish);

  # The addresses at which a host calls the process of a kind of need on a provider host.
  process = host: on: kind: {
    inherit (on.provider.${kind}) id;
    addresses = address.called (h: h.provider.${kind}) host on;
  };
in
name:
let
  host = t.hosts.${name};
  isHere = n: n.providers == t.providers.${n.kind}.hosts;
  asked = partition isHere needs.${name};
  # The needs for which the host asks providers of other clusters, by kind.
  away = groupBy (n: n.kind) asked.wrong;
  manifest = {
    cluster = t.name;
    host = name;
    inherit (t) trustDomain trust;
    identity = device host;
    inherit (host) roles;
    providers =
      mapAttrs
        (
          p: calls:
          listToAttrs (
            map (c: {
              name = c.kind;
              value =
                if elem p t.providers.${c.kind}.hosts then
                  process host t.hosts.${p} c.kind
                else
                  t.elsewhereProviders.${c.kind}.${p};
            }) calls
          )
        )
        (
          groupBy (c: c.provider) (
            concatMap (kind: map (provider: { inherit kind provider; }) t.providers.${kind}.hosts) (
              attrNames (groupBy (n: n.kind) asked.right)
            )
            ++ concatMap (
              kind: map (provider: { inherit kind provider; }) (sorted (concatMap (n: n.providers) away.${kind}))
            ) (attrNames away)
          )
        );
    needs = needs.${name};
    forwarder = forwarder host;
  };
in
manifest
// {
  units = (unitsOf host).expected {
    inherit manifest;
    policy = policyOf name;
  };
}
// optionalAttrs (t.requests != { } && requested manifest != [ ]) {
  requests = access.latent.rules (requested manifest);
}
// optionalAttrs (accepted host != [ ]) {
  federation = sort (a: b: a.trustDomain < b.trustDomain) (
    map (n: {
      inherit (t.federated.${n}) trustDomain bundle;
      need = federation.need n;
    }) (accepted host)
  );
}
