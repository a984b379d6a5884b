# Chooses the transports that forwarders use for connections to each other.
let
  inherit (builtins)
    elem
    filter
    head
    length
    ;
  inherit (import ../lib) distinct isInvalid;
in
rec {
  # The transports demanded in several places: none, one, or two that exclude each other.
  # written :: [String] -> [String]
  written = all: distinct (filter (t: !isInvalid t && t != "auto") all);

  # The attribute of a document.
  # attribute :: [String] -> AttrSet
  attribute = all: if all == [ ] then { } else { transport = head all; };

  excluded = all: length all > 1;

  # Reports whether the forwarder of a host listens for a transport.
  # listens :: "quic" | "tcp" -> Host -> Bool
  listens =
    transport: host:
    elem host.transport [
      "auto"
      transport
    ];
}
