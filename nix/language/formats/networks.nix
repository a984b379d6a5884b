# Networks in CIDR form, or single addresses.
let
  inherit (builtins)
    all
    elemAt
    filter
    foldl'
    fromJSON
    genList
    isString
    length
    match
    split
    stringLength
    substring
    ;
  inherit (import ../types) scalar;
  inherit (import ../../lib/names.nix) spelled;
  inherit (import ./addresses.nix) isV4 isV6;
  wrong = (import ../../lib).invalid;

  digits = {
    "0" = 0;
    "1" = 1;
    "2" = 2;
    "3" = 3;
    "4" = 4;
    "5" = 5;
    "6" = 6;
    "7" = 7;
    "8" = 8;
    "9" = 9;
    a = 10;
    b = 11;
    c = 12;
    d = 13;
    e = 14;
    f = 15;
  };
  hex = g: foldl' (n: i: n * 16 + digits.${substring i 1 g}) 0 (genList (i: i) (stringLength g));

  # Reports whether all bits after the first `bits` are zero. The address is in parts of `width`
  # bits.
  aligned =
    width: parts: bits:
    let
      power = n: foldl' (p: _: p * 2) 1 (genList (i: i) n);
      rest =
        i:
        let
          free = width * (i + 1) - bits;
        in
        if free <= 0 then
          0
        else if free >= width then
          width
        else
          free;
      isZero =
        i:
        let
          size = power (rest i);
          v = elemAt parts i;
        in
        v / size * size == v;
    in
    all isZero (genList (i: i) (length parts));

  # IPv4 addresses in IPv6 form are written as IPv4 addresses.
  isSix = v: isV6 v && match "(0:){5}ffff:.*" (spelled v) == null;
  pieces = separator: text: filter isString (split separator text);
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
        else if isV4 address then
          bits <= 32 && aligned 8 (map fromJSON (pieces "\\." address)) bits
        else
          isSix address && bits <= 128 && aligned 16 (map hex (pieces ":" (spelled address))) bits
      );
  };
}
