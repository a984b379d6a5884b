# Names and what is derived from them: SPIFFE IDs, addresses, digests.
let
  inherit (builtins)
    concatStringsSep
    elemAt
    foldl'
    fromJSON
    genList
    hashString
    map
    match
    substring
    ;

  digit = {
    "0" = 0; "1" = 1; "2" = 2; "3" = 3; "4" = 4; "5" = 5; "6" = 6; "7" = 7;
    "8" = 8; "9" = 9; a = 10; b = 11; c = 12; d = 13; e = 14; f = 15;
  };
  base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

  # The n hex digits of s from place i on, as a number.
  hex = s: i: n: foldl' (sum: k: sum * 16 + digit.${substring (i + k) 1 s}) 0 (genList (k: k) n);
  char = n: substring n 1 base64;
  mod = a: b: a - (a / b) * b;
  power = n: foldl' (p: _: p * 2) 1 (genList (k: k) n);

  dotted = n: concatStringsSep "." (map (p: toString (mod (n / p) 256)) [ 16777216 65536 256 1 ]);
in
{
  # "spiffe://<trust domain>/<kind>/[<node>/]<name>"
  id = trustDomain: path: "spiffe://${trustDomain}/${path}";

  # host:port, an IPv6 address in brackets.
  hostPort = address: port:
    if match ".*:.*" address == null then "${address}:${toString port}" else "[${address}]:${toString port}";

  # "127.64.0.0/10" → its first address as a number, how many addresses, and
  # whether the bits after the prefix are zero.
  range = cidr:
    let
      part = match "([0-9]+)\\.([0-9]+)\\.([0-9]+)\\.([0-9]+)/([0-9]+)" cidr;
      number = i: fromJSON (elemAt part i);
      first = ((number 0 * 256 + number 1) * 256 + number 2) * 256 + number 3;
      size = power (32 - number 4);
    in
    { inherit first size; aligned = mod first size == 0; };

  # An address of the range for a name: the same name always has the same address,
  # whatever else the cluster holds. Never the range's first or last.
  addressIn = range: name: dotted (range.first + 1 + mod (hex (hashString "sha256" name) 0 8) (range.size - 2));

  # The W3C SRI form of a text's SHA-256. 64 hex digits are 21 times three digits
  # (two base64 characters) and one digit more.
  sri = text:
    let
      sum = hashString "sha256" text;
      pair = i: let n = hex sum (3 * i) 3; in char (n / 64) + char (mod n 64);
    in
    "sha256-${concatStringsSep "" (genList pair 21)}${char (hex sum 63 1 * 4)}=";
}
