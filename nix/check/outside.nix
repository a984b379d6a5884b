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
    filter
    head
    mapAttrs
    ;
  inherit (import ../lib) distinct isInvalid;
  inherit (import ../resolve/outside.nix) role;
  inherit (import ../lib/networks.nix) overlap;
  inherit (lib)
    attribute
    faultIf
    missing
    show
    when
    ;
  entries = import ../access/entries.nix {
    inherit access;
    topology = t;
  };

  # Outside callers with a common address whose connections to one port cannot be told apart: they
  # lead to different services, or only one of them has a certificate. Callers with certificates are
  # known by these.
  mistaken =
    n: o:
    let
      key = e: "${toString e.instance.port} ${e.port.carried.protocol or ""}";
      own = filter (e: e.caller.name == n) (entries.outsideOn o.via);
      written = caller: filter (a: !isInvalid a) caller.addresses;
      networks = written o;
      anywhere = caller: caller.mtls && caller.addresses == [ ];
      isCommon =
        other: anywhere o || anywhere other || any (a: any (overlap a) networks) (written other);
      # Each pair is reported once, at the later name.
      clashes = e: filter (
        other:
        other.caller.name < n
        && key other == key e
        && (
          if o.mtls then
            !other.caller.mtls
          else
            other.caller.mtls || other.instance.entry.id != e.instance.entry.id
        )
        && isCommon other.caller
      ) (entries.outsideOn o.via);
    in
    distinct (
      concatMap (
        e:
        let
          others = clashes e;
        in
        faultIf (others != [ ]) {
          id = "FL167";
          place = "outside.${attribute n}.reaches";
          problem =
            if o.mtls != (head others).caller.mtls then
              "at port ${toString e.instance.port} of ${o.via}, outside.${(head others).caller.name}, which has ${
                if o.mtls then "no" else "a"
              } certificate, can have the same address, on the way to"
            else
              "at port ${toString e.instance.port} of ${o.via}, an address of outside.${(head others).caller.name} leads to ${(head others).service.name} already, not to";
          value = e.service.name;
          remedy = "give one of the services another listenPort, or the callers different addresses or hosts";
        }
      ) own
    );

  # A certificate is proved in TLS, which needs TCP.
  unproven =
    n: o:
    distinct (
      concatMap (
        e:
        faultIf (e.caller.name == n && e.port.carried.protocol or "" == "udp") {
          id = "FL175";
          place = "outside.${attribute n}.reaches";
          problem = "over UDP, nothing asks the caller for its certificate on the way to";
          value = e.service.name + (if e.service.several then ":${e.port.name}" else "");
          remedy = "name a service or port over TCP, or give the machine addresses instead of mtls";
        }
      ) (entries.outsideOn o.via)
    );
in
mapAttrs (
  n: o:
  let
    place = "outside.${attribute n}";
  in
  when (o.addresses == [ ] && !o.mtls) (missing place "addresses" "write addresses = [ \"10.0.5.20\" ];, or mtls = true; for a machine that can hold a certificate")
  ++ when (o.reaches == [ ]) (missing place "reaches" "write the services that it reaches, reaches = [ \"mqtt\" ];")
  ++ lib.host "${place}.via" [ o.via ]
  ++ lib.part "${place}.reaches" o.reaches
  ++ faultIf (clean.roles ? ${role n}) {
    id = "FL005";
    place = "roles.${role n}";
    problem = "reserved name";
    value = show (role n);
    remedy = "call it otherwise: the node of ${o.via} connects outside.${n} by a role of this name";
  }
  ++ when (t.hosts ? ${o.via}) (mistaken n o ++ when o.mtls (unproven n o))
) clean.outside
