# Faults of callers outside the cluster: name → faults.
{
  access,
  clean,
  lib,
  t,
  ...
}:
let
  inherit (builtins)
    any
    concatMap
    elem
    filter
    head
    mapAttrs
    ;
  inherit (import ../lib) distinct;
  inherit (import ../resolve/outside.nix) role;
  address = import ../resolve/address.nix;
  inherit (lib)
    attribute
    fault
    missing
    show
    when
    ;
  entries = import ../access/entries.nix {
    inherit access;
    topology = t;
  };

  # Outside callers with a common address whose connections to one port lead to different services.
  mistaken =
    n: o:
    let
      key = e: "${toString e.instance.port} ${e.port.carried.protocol or ""}";
      own = filter (e: e.caller.name == n) (entries.outsideOn o.via);
      networks = map address.cidr o.addresses;
      # Each pair is reported once, at the later name.
      clashes = e: filter (
        other:
        other.caller.name < n
        && key other == key e
        && other.instance.entry.id != e.instance.entry.id
        && any (a: elem (address.cidr a) networks) other.caller.addresses
      ) (entries.outsideOn o.via);
    in
    distinct (
      concatMap (
        e:
        let
          others = clashes e;
        in
        when (others != [ ]) [
          (fault {
            id = "FL167";
            place = "outside.${attribute n}.reaches";
            problem = "at port ${toString e.instance.port} of ${o.via}, an address of outside.${(head others).caller.name} leads to ${(head others).service.name} already, not to";
            value = e.service.name;
            remedy = "give one of the services another listenPort, or the callers different addresses or hosts";
          })
        ]
      ) own
    );
in
mapAttrs (
  n: o:
  let
    place = "outside.${attribute n}";
  in
  when (o.addresses == [ ]) (missing place "addresses" "write addresses = [ \"10.0.5.20\" ];")
  ++ when (o.reaches == [ ]) (missing place "reaches" "write the services that it reaches, reaches = [ \"mqtt\" ];")
  ++ lib.host "${place}.via" [ o.via ]
  ++ lib.part "${place}.reaches" o.reaches
  ++ when (clean.roles ? ${role n}) [
    (fault {
      id = "FL005";
      place = "roles.${role n}";
      problem = "reserved name";
      value = show (role n);
      remedy = "call it otherwise: the node of ${o.via} connects outside.${n} by a role of this name";
    })
  ]
  ++ when (t.hosts ? ${o.via}) (mistaken n o)
) clean.outside
