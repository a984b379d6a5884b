# Faults of the addresses at which hosts are called and listen: name → host → faults.
{
  t,
  lib,
  ...
}:
let
  inherit (builtins)
    any
    attrNames
    attrValues
    concatLists
    concatMap
    concatStringsSep
    elem
    filter
    foldl'
    groupBy
    head
    length
    mapAttrs
    match
    tail
    ;
  inherit (import ../lib) isInvalid;
  inherit (lib)
    attribute
    fault
    faultIf
    show
    when
    ;
  inherit (import ../lib/names.nix) hostPort;
  address = import ../resolve/address.nix;

  written = h: h.address ++ concatLists (attrValues h.networks);

  # Every address of a host's programs with its owner, the place where it is written, and its
  # network, or "" for any network.
  entries =
    programs: h:
    let
      of =
        p: network: place:
        map (at: {
          inherit at network place;
          inherit (h) name;
          what = p.what or "";
          portOf = p.portOf or "forwarderPort";
          key = address.canonical at;
        });
    in
    concatMap (
      p:
      of p "" "address" p.anywhere
      ++ concatMap (n: of p n "networks.${attribute n}" p.networks.${n}) (attrNames p.networks)
    ) (programs h);

  # Entries whose address an earlier entry has, for hosts that share a network with both. Computed
  # once for all hosts: name → entries, each with the other host.
  taken =
    programs: hosts:
    let
      all = concatMap (entries programs) hosts;
      groups = groupBy (e: e.key) all;
      meet =
        a: b:
        if a.name == b.name then
          a.network == b.network
        else
          a.network == "" || b.network == "" || a.network == b.network;
      later =
        same:
        (foldl'
          (
            sum: e:
            let
              before = filter (meet e) sum.seen;
            in
            {
              seen = sum.seen ++ [ e ];
              found = sum.found ++ when (before != [ ]) [ (e // { other = head before; }) ];
            }
          )
          {
            seen = [ ];
            found = [ ];
          }
          same
        ).found;
    in
    if length (attrNames groups) == length all then
      { }
    else
      groupBy (e: e.name) (concatMap later (filter (same: tail same != [ ]) (attrValues groups)));

  valid = filter (h: !any isInvalid (written h)) (attrValues t.hosts);
  # A hidden host's addresses are not to be those of another either.
  forwarders = taken (
    h:
    if h.hidden then
      [ (address.program h h.forwarderPort (address.at h.forwarderPort)) ]
    else
      [ h.forwarder ]
  ) valid;
  # If forwarders on two hosts have different addresses, so have their providers. Two programs of
  # one host in conflict have the same port, which ports.nix reports.
  providers = mapAttrs (n: filter (e: e.other.name != n)) (
    taken (
      h:
      map (
        kind:
        h.provider.${kind}
        // {
          what = "the ${kind} provider of ";
          portOf = if t.providers.${kind} ? port then "providers.${kind}.port" else "providerPort";
        }
      ) h.kinds
    ) valid
  );

  twice =
    n:
    map (
      e:
      fault {
        id = "FL020";
        place =
          if e.what == "" then
            "hosts.${n}.${e.place}"
          else if e.portOf == "providerPort" then
            "hosts.${n}.providerPort"
          else
            e.portOf;
        problem =
          if e.other.name == n then
            "it already has"
          else
            "${if e.what == "" then "" else "${e.what}host ${n} and "}${e.other.what}host ${e.other.name} ${
              if e.what == "" then "already has" else "would both have"
            }";
        value = e.at;
        remedy =
          if e.other.name == n then
            "write each address once"
          else
            "give one of them another address, or, behind one address, another ${e.portOf}";
      }
    );

  # If all addresses are loopback addresses, all hosts are on one machine.
  loops =
    a:
    let
      m = address.machine a;
    in
    match "127\\..*" m != null
    || elem m [
      "::1"
      "localhost"
    ];
  apart = any (h: any (a: !loops a) (written h)) valid;
  loop =
    n: place: a:
    faultIf (!isInvalid a && loops a) {
      id = "FL038";
      place = "hosts.${n}.${place}";
      problem = "other hosts would reach themselves at";
      value = show a;
      remedy = "write the address or name at which they reach this one";
    };
  looping =
    n: h:
    concatMap (loop n "address") h.address
    ++ concatMap (network: concatMap (loop n "networks.${attribute network}") h.networks.${network}) (
      attrNames h.networks
    );

  # A program that listens on all addresses of a family has each of them.
  excluding =
    bind:
    let
      v4 = filter (ip: match ".*:.*" ip == null) bind;
    in
    elem "::" bind && tail bind != [ ]
    || elem "0.0.0.0" v4 && tail v4 != [ ]
    || length (attrNames (groupBy (ip: address.canonical (hostPort ip 0)) bind)) < length bind;
  bind =
    n: h:
    faultIf (!any isInvalid h.bind && excluding h.bind) {
      id = "FL039";
      place = "hosts.${n}.bind";
      problem = "one of these has what another listens on:";
      value = concatStringsSep ", " h.bind;
      remedy = "write each once, or 0.0.0.0 or :: alone for all of them";
    };

  absent =
    n: h:
    faultIf
      (
        written h == [ ]
        && (h.kinds != [ ] || h.relay || h.relays == [ ] && any (s: s.published) h.running)
      )
      {
        id = "FL003";
        place = "hosts.${n}";
        problem = "missing attribute";
        value = "address";
        remedy = "others call this host: write address = \"192.0.2.1\"; or its DNS name${
          if t.relaying && h.kinds == [ ] && !h.relay then
            ", or relays = [ … ]; through which they reach it"
          else
            ""
        }";
      };
in
n: h:
(if apart then looping n h else [ ])
++ (if forwarders ? ${n} then twice n forwarders.${n} else [ ])
++ (if providers ? ${n} then twice n providers.${n} else [ ])
++ (if h.bind == [ ] then [ ] else bind n h)
++ (if h.address == [ ] then absent n h else [ ])
