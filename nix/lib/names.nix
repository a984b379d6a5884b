# Names and values derived from them: SPIFFE IDs, addresses, digests.
let
  inherit (builtins)
    bitAnd
    concatLists
    concatStringsSep
    elemAt
    filter
    fromJSON
    genList
    hashString
    head
    isString
    length
    listToAttrs
    match
    replaceStrings
    split
    substring
    tail
    ;

  constants = (import ./constants.nix).spiffe;

  inherit (import ./digits.nix) letters power;
  digits = letters (import ./digits.nix).hex;
  base64 = letters (import ./digits.nix).base64;
  pairs = a: b: concatLists (map (x: map (y: x + y) b) a);

  # { <key> = <value>; } from a list of keys and a function of the index.
  table =
    keys: value:
    listToAttrs (
      genList (i: {
        name = elemAt keys i;
        value = value i;
      }) (length keys)
    );

  byte = table (pairs digits digits) (i: i);
  # Digits as pairs of bits: two pairs make a hex digit, three a base64 character.
  quarters = letters "0123";
  fours = pairs quarters quarters;
  sixes = pairs quarters fours;

  mod = a: b: a - (a / b) * b;
  powers = genList power 33;
in
{
  # "spiffe://<trust domain>/<kind>/[<node>/]<name>"
  # id :: String -> String -> String
  id = trustDomain: path: "spiffe://${trustDomain}/${path}";

  # The reserved services: one for each kind of need on a provider host, and on the hosts of
  # providers.config those of operators and of the Nix binary cache.
  provider = kind: constants.providerPrefix + kind;
  control = constants.controlService;
  cache = constants.cacheService;

  # The name that callers use, "wiki.demo.flor.rete", and whether a name has this form.
  # called :: String -> String -> String
  called = name: trustDomain: "${name}.${trustDomain}${constants.suffix}";
  isInside = v: match ".*\\${constants.suffix}" v != null;

  # The port to which an ingress connects, for services with several ports.
  entrance = "http";

  # "service/wiki" from a SPIFFE ID.
  # short :: String -> String
  short = id: head (match "spiffe://[^/]*/(.*)" id);

  # "user" from the SPIFFE ID of a user.
  # kind :: String -> String
  kind = id: head (match "spiffe://[^/]*/([^/]*)/.*" id);

  # "wiki" from the ID of a service, null for other IDs.
  service =
    id:
    let
      part = match "spiffe://[^/]*/service/([^/]*/)?([^/]*)" id;
    in
    if part == null then null else elemAt part 1;

  # The ID of a service, or of its instance on a host, by another name of the service.
  # renamed :: String -> String -> String
  renamed = id: name: "${head (match "(spiffe://[^/]*/service/([^/]*/)?)[^/]*" id)}${name}";

  # host:port, with an IPv6 address in brackets.
  # hostPort :: String -> Int -> String
  hostPort =
    address: port:
    if match ".*:.*" address == null then
      "${address}:${toString port}"
    else
      "[${address}]:${toString port}";

  # The machine of an upstream, null if it is the forwarder's own.
  # machine :: String -> String | null
  machine =
    upstream:
    let
      part = match "\\[?([^]]*)]?:[0-9]+" upstream;
    in
    if part == null || match "127\\..*|0\\.0\\.0\\.0|::1?|localhost|unix:.*" (head part) != null then
      null
    else
      head part;

  # An IPv6 address in its longest form, so that equal addresses have one spelling: "::1" →
  # "0:0:0:0:0:0:0:1"
  # spelled :: String -> String
  spelled =
    address:
    let
      lower = replaceStrings [ "A" "B" "C" "D" "E" "F" ] [ "a" "b" "c" "d" "e" "f" ] address;
      groups =
        part: map (g: head (match "0*([0-9a-f]+)" g)) (filter (g: isString g && g != "") (split ":" part));
      halves = map groups (filter isString (split "::" lower));
      zeros = genList (_: "0") (8 - length (concatLists halves));
    in
    concatStringsSep ":" (head halves ++ zeros ++ concatLists (tail halves));

  # "127.64.0.0/10" → its first address as a number, the number of addresses, and whether the bits
  # after the prefix are zero.
  # range :: String -> { first :: Int; size :: Int; aligned :: Bool; }
  range =
    cidr:
    let
      part = match "([0-9]+)\\.([0-9]+)\\.([0-9]+)\\.([0-9]+)/([0-9]+)" cidr;
      number = i: fromJSON (elemAt part i);
      first = ((number 0 * 256 + number 1) * 256 + number 2) * 256 + number 3;
      size = elemAt powers (32 - number 4);
    in
    {
      inherit first size;
      aligned = mod first size == 0;
    };

  # The first 32 bits of a name's SHA-256.
  # hash :: String -> Int
  hash =
    name:
    let
      sum = hashString "sha256" name;
    in
    (
      (byte.${substring 0 2 sum} * 256 + byte.${substring 2 2 sum}) * 256 + byte.${substring 4 2 sum}
    )
    * 256
    + byte.${substring 6 2 sum};

  # The default range of local listeners.
  # loopback :: String
  loopback = "127.64.0.0/10";

  # The listener for a hash in a range: address and port in one number, for comparison and lookup.
  # The same name always has the same key, whatever else the cluster contains, and never the first
  # or last address of the range.
  #   listenerKey (range "127.64.0.0/10") 6 80 → 127.64.0.7:80 → 2134900743 * 65536 + 80
  # listenerKey :: Range -> Int -> Int -> Int
  listenerKey =
    range: hash: port:
    let
      places = range.size - 2;
    in
    (range.first + 1 + hash - hash / places * places) * 65536 + port;

  # The port of a key, and the listener of a key as host:port.
  # port :: Int -> Int; listen :: Int -> String
  port = bitAnd 65535;
  listen =
    key:
    "${toString (key / 1099511627776)}.${toString (bitAnd 255 (key / 4294967296))}.${
      toString (bitAnd 255 (key / 16777216))
    }.${toString (bitAnd 255 (key / 65536))}:${toString (bitAnd 65535 key)}";

  # The SHA-256 of a text in the form of W3C SRI.
  # sri :: String -> String
  sri =
    text:
    "sha256-${
      replaceStrings sixes base64 (replaceStrings digits fours (hashString "sha256" text) + "0")
    }=";
}
