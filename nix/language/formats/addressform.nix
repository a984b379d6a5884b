# What an address, the name of a machine, host:port and a URL look like: predicates, each
# true of nothing that a Go program would refuse.
let
  inherit (builtins)
    elemAt
    fromJSON
    head
    isString
    length
    match
    split
    stringLength
    ;
  inherit (import ../../lib/names.nix) isInside spelled;
  constants = (import ../../lib/constants.nix).spiffe;
  inherit (import ../types/scalar.nix) matches;
  inherit (import ../../lib/text.nix) contains;
in
rec {
  octet = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";

  # Of IP addresses: their form alone.
  # isV4, isV6 :: Any -> Bool
  isV4 = matches "(${octet}\\.){3}${octet}";
  isV6 =
    v:
    matches "([0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}" v
    && !contains ":::" v
    && !matches ":[^:].*|.*[^:]:" v
    && (length (split "::" v) == 3 || length (split "::" v) == 1 && length (split ":" v) == 15);

  # The last label of a name is not a number: 10.0.0.300 is a mistake, no name.
  # isName :: Any -> Bool
  isName = matches constants.hostnamePattern;

  # Addresses of one machine: not of none, of many or of all.
  # isUnicast :: Any -> Bool
  isUnicast = v: isUnicastV4 v || isUnicastV6 v;
  isUnicastV4 = matches "(25[0-4]|24[0-9]|22[0-3]|2[01][0-9]|1[0-9][0-9]|[1-9][0-9]?)(\\.${octet}){3}";
  isUnicastV6 =
    v:
    isV6 v
    && !matches "[0:]+|[Ff]([Ff][0-9A-Fa-f]|[Ee][89ABab])[0-9A-Fa-f]:.*" v
    && (v == "::1" || !matches "(0:){5}(0|ffff):.*" (spelled v) || matches "(0:){7}1" (spelled v));

  # Not of a link: a link-local address does not name it.
  # isMachine :: Any -> Bool
  isMachine =
    v:
    isUnicastV4 v
    || isUnicastV6 v && !matches "[Ff][Ee][89AaBb].:.*" v
    || isName v && stringLength v <= 253 && !isInside v;

  # "127.0.0.1:8080", "[::1]:8080", "db.example.org:5432"
  # isHostPort :: Any -> Bool
  isHostPort =
    v:
    let
      six = match "\\[([^]]*)]:([1-9][0-9]{0,4})" v;
      four = match "([^:]*):([1-9][0-9]{0,4})" v;
    in
    matches ".*:[1-9][0-9]{0,4}" v
    && fromJSON (head (match ".*:([0-9]+)" v)) < 65536
    && (six != null && isV6 (head six) || four != null && (isV4 (head four) || isName (head four)));

  # What net/url and Dex read: the parts of an http or https URL, null where it is none.
  #   "https://wiki.example.org:8443/cb?a=b" → "/cb?a=b"
  # afterHost :: Any -> String | null
  afterHost =
    v:
    let
      part = if isString v && stringLength v <= 1000 then matchURL v else null;
      six = elemAt part 1;
      port = elemAt part 3;
      rest = elemAt part 4;
    in
    if part == null || six != null && !isV6 six || port != null && fromJSON port > 65535 then
      null
    else if rest == null then
      ""
    else
      rest;
  matchURL = match "https?://([A-Za-z0-9._-]+|\\[([0-9A-Fa-f:]+)])(:([1-9][0-9]{0,4}))?([/?]([A-Za-z0-9._~:/?@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)?";
}
