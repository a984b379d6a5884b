# `reach` of a host's manifest: one entry for each service, sorted by ID.
# { identities, listenerKey, reachableOn, relayed, t, transports, union } -> Host -> [Reachable]
{
  identities,
  listenerKey,
  reachableOn,
  relayed,
  t,
  transports,
  union,
}:
let
  inherit (builtins)
    attrValues
    concatMap
    elem
    filter
    listToAttrs
    mapAttrs
    ;
  address = import ../resolve/address.nix;
  callersOf = import ./callers.nix;
  names = import ../lib/names.nix;
  transport = import ../resolve/transport.nix;
in
host:
let
  # Services on this host, which it calls at other addresses than other hosts do.
  reachable = reachableOn.${host.name};
  here = listToAttrs (
    concatMap (
      s:
      filter (i: reachable ? ${i.name} && elem i.value.entry.id (s.idsOn host.name)) s.reachables
    ) host.running
  );
  isNetworked = host.networks != { };
  endpoints = i: {
    endpoints = filter (e: e != [ ]) (
      map (on: address.called (h: h.forwarder) host t.hosts.${on}) i.on
    );
  };
  # Most hosts listen and connect in the same way, and share their entries.
  plain = host.loopback == names.loopback && host.transport == "auto" && !isNetworked;
  # Attributes that depend on the settings of this host.
  own =
    i:
    (
      if host.loopback == names.loopback then
        { }
      else
        { listen = names.listen (listenerKey host i); }
    )
    // transport.attribute (transports host i);
  entry = i: i.entry // own i // (if isNetworked && i.networked then endpoints i else { });
  written = entries // mapAttrs (key: i: entries.${key} // endpoints i) here;
  write = if plain then i: i.entry else entry;
  # A host of a user reaches thousands of services, so plain entries save a call for each.
  writeFor = called: if plain then _: i: i.entry // called else _: i: entry i // called;
  always = union (
    map (
      { callers, reach }:
      mapAttrs (writeFor { inherit callers; }) reach
    ) (callersOf identities.${host.name})
  );
  # Callers that the other end refuses unless a grant is in force.
  later = map (i: {
    inherit (i) id;
    reach = i.latent;
  }) (filter (i: i.latent != { }) identities.${host.name});
  entries =
    if later == [ ] then
      always
    else
      always
      // union (
        map (
          { callers, reach }:
          mapAttrs (key: i: (always.${key} or (write i // { callers = [ ]; })) // { latent = callers; }) reach
        ) (callersOf later)
      );
in
attrValues (
  if t.relaying then
    written // mapAttrs (key: via: written.${key} // via) (relayed.via host)
  else
    written
)
