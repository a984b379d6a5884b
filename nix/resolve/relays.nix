# Resolves relays. A relay is a host through which other hosts reach a host that they cannot reach
# directly, for example because it has no public address.
let
  inherit (builtins)
    any
    elemAt
    filter
    genList
    hashString
    length
    mapAttrs
    sort
    ;
  inherit (import ../lib) sorted;
  address = import ./address.nix;

  # Rendezvous hashing spreads hosts with the same relays over them. When a relay is added or removed,
  # only the hosts that come to it or leave it move.
  chosen =
    name: relays:
    let
      ranked = sort (a: b: a.rank > b.rank) (
        map (relay: {
          inherit relay;
          rank = hashString "sha256" "${name} ${relay}";
        }) relays
      );
    in
    if length relays <= most then relays else genList (i: (elemAt ranked i).relay) most;
  most = 2;
in
rec {
  # Reports whether a host has an address of the forwarder of another.
  # calls :: Host -> Host -> Bool
  calls = from: to: address.called (h: h.forwarder) from to != [ ];

  # The program without the addresses at which other hosts call it. It listens on loopback, for the
  # callers on its own host.
  # hide :: Program -> Program
  hide =
    program:
    program
    // {
      anywhere = [ ];
      networks = mapAttrs (_: _: [ ]) program.networks;
    };

  # The relays of a host that are hosts with `relay = true;`, sorted.
  # known :: { name = Host; } -> Host -> [hostName]
  known =
    hosts: host: filter (r: r != host.name && hosts ? ${r} && hosts.${r}.relay) (sorted host.relays);

  # The relays to which a host keeps a connection, so that others reach it there: at most two of
  # those that it can call, sorted, and none if it publishes nothing.
  # uplinks :: { name = Host; } -> Host -> [hostName]
  uplinks =
    hosts: host:
    if any (s: s.published) host.running then
      sorted (chosen host.name (filter (r: calls host hosts.${r}) (known hosts host)))
    else
      [ ];
}
