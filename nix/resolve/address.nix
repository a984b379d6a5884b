# Computes the addresses at which other hosts reach a host, and the addresses at which it listens.
let
  inherit (builtins)
    any
    attrNames
    concatMap
    elem
    filter
    mapAttrs
    match
    substring
    toString
    ;
  inherit (import ../lib) distinct sorted;
  elemAt = builtins.elemAt;
  inherit (import ../lib/names.nix) hostPort spelled;

  isAny =
    ip:
    elem ip [
      "0.0.0.0"
      "::"
    ];
  # "host" or "host:port"
  part = written: match "\\[([^]]*)]:([0-9]+)|([^:]*):([0-9]+)" written;
in
rec {
  # The machine of an address, without the port.
  # machine :: String -> String
  machine =
    written:
    let
      p = part written;
    in
    if p == null then
      written
    else if elemAt p 0 != null then
      elemAt p 0
    else
      elemAt p 2;

  # The host:port of an address, with the usual port if the address has none.
  # at :: Int -> String -> String
  at =
    usual: written:
    let
      p = part written;
    in
    if p == null then hostPort written usual else written;

  # A network in CIDR form. An address is a network by itself.
  # cidr :: String -> String
  cidr =
    written:
    if match ".*/.*" written != null then
      written
    else
      "${written}/${if match ".*:.*" written != null then "128" else "32"}";

  # Networks in CIDR form, sorted, each once.
  # networks :: [String] -> [String]
  networks = all: distinct (sorted (map cidr all));

  # The same spelling for equal addresses.
  # canonical :: String -> String
  canonical =
    hostport:
    let
      p = match "\\[([^]]*)]:([0-9]+)" hostport;
    in
    if substring 0 1 hostport != "[" || p == null then
      hostport
    else
      "[${spelled (elemAt p 0)}]:${elemAt p 1}";

  # All addresses by which others know a host, without ports.
  # machines :: Host -> [String]
  machines =
    host:
    distinct (
      map machine (host.address ++ concatMap (n: host.networks.${n}) (attrNames host.networks))
    );

  # The addresses of a program of a host: where it listens, where the host itself calls it, and
  # where other hosts call it, from anywhere or within each of its networks.
  # program :: Host -> Int -> (String -> String) -> { listen, self, anywhere :: [String]; networks :: { name = [String]; }; }
  program = host: port: address: {
    listen = if host.bind == [ ] then [ ":${toString port}" ] else map (ip: hostPort ip port) host.bind;
    self = distinct (
      map (ip: hostPort (if isAny ip then "127.0.0.1" else ip) port) (
        if host.bind == [ ] then [ "::" ] else host.bind
      )
    );
    anywhere = map address host.address;
    networks = mapAttrs (_: map address) host.networks;
  };

  # The addresses at which a host calls a program of another, in the order in which it tries them:
  # within the networks that both are on, then from anywhere. In a network that only one of them is
  # on, another machine may have the same address.
  # called :: "forwarder" | "provider" -> Host -> Host -> [String]
  called =
    program: from: to:
    let
      p = program to;
    in
    if from.name == to.name then
      p.self
    else if to.networks == { } then
      p.anywhere
    else
      distinct (
        concatMap (n: p.networks.${n}) (filter (n: from.networks ? ${n}) (attrNames to.networks))
        ++ p.anywhere
      );

  # Reports whether a host listens on all its IPv4 addresses.
  # listensOnAll :: Host -> Bool
  listensOnAll = host: host.bind == [ ] || any isAny host.bind;
}
