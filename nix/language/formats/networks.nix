# Networks in CIDR form, or single addresses.
let
  inherit (builtins)
    elemAt
    fromJSON
    isString
    match
    ;
  inherit (import ../types) scalar;
  inherit (import ../../lib/names.nix) spelled;
  inherit (import ../../lib/networks.nix) aligned;
  inherit (import ./addresses.nix) isV4 isV6;
  wrong = (import ../../lib).invalid;

  # IPv4 addresses in IPv6 form are written as IPv4 addresses.
  isSix = v: isV6 v && match "(0:){5}ffff:.*" (spelled v) == null;
in
{
  network = scalar {
    want = "an IP address, or a network whose bits after the prefix are zero";
    hint = "write for example \"192.0.2.0/24\", \"2001:db8::/32\" or \"192.0.2.7\"";
    example = "192.0.2.0/24";
    invalid = wrong.string;
    ok =
      v:
      let
        cidr = match "([^/]*)/(0|[1-9][0-9]{0,2})" v;
        address = elemAt cidr 0;
        bits = fromJSON (elemAt cidr 1);
      in
      isString v
      && (
        if cidr == null then
          isV4 v || isSix v
        else
          (if isV4 address then bits <= 32 else isSix address && bits <= 128) && aligned v
      );
  };
}
