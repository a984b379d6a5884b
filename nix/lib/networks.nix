# Networks in CIDR form, as numbers. An address is a network by itself.
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
  inherit (import ./digits.nix) power values;
  inherit (import ./names.nix) spelled;

  digits = values (import ./digits.nix).hex;
  hex = g: foldl' (n: i: n * 16 + digits.${substring i 1 g}) 0 (genList (i: i) (stringLength g));
  pieces = separator: text: filter isString (split separator text);

  # The address as a list of numbers of `width` bits, and the number of bits of the prefix.
  parse =
    written:
    let
      cidr = match "([^/]*)/([0-9]*)" written;
      address = if cidr == null then written else elemAt cidr 0;
      isFour = match ".*:.*" address == null;
    in
    {
      width = if isFour then 8 else 16;
      parts =
        if isFour then map fromJSON (pieces "\\." address) else map hex (pieces ":" (spelled address));
      bits =
        if cidr != null then
          fromJSON (elemAt cidr 1)
        else if isFour then
          32
        else
          128;
    };

  # For each part of an address, the size of the range that the bits after the first `bits` have.
  sizes =
    n: bits:
    genList (
      i:
      let
        free = n.width * (i + 1) - bits;
      in
      if free <= 0 then
        1
      else if free >= n.width then
        power n.width
      else
        power free
    ) (length n.parts);
in
{
  # Reports whether all bits after the prefix are zero.
  # aligned :: String -> Bool
  aligned =
    written:
    let
      n = parse written;
      size = sizes n n.bits;
      isZero =
        i:
        let
          v = elemAt n.parts i;
        in
        v / elemAt size i * elemAt size i == v;
    in
    all isZero (genList (i: i) (length n.parts));

  # Reports whether two networks have an address in common.
  # overlap :: String -> String -> Bool
  overlap =
    one: other:
    let
      a = parse one;
      b = parse other;
      size = sizes a (if a.bits < b.bits then a.bits else b.bits);
    in
    a.width == b.width
    && all (i: elemAt a.parts i / elemAt size i == elemAt b.parts i / elemAt size i) (
      genList (i: i) (length a.parts)
    );
}
