# What connections between forwarders go over, where somebody wrote it.
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
  # What is written in several places: none, one, or two that exclude each other.
  # written :: [String] -> [String]
  written = all: distinct (filter (t: !isInvalid t && t != "auto") all);

  # What a document has of it.
  # attribute :: [String] -> AttrSet
  attribute = all: if all == [ ] then { } else { transport = head all; };

  excluded = all: length all > 1;

  # Does a forwarder listen for it?
  # listens :: "quic" | "tcp" -> Host -> Bool
  listens =
    transport: host:
    elem host.transport [
      "auto"
      transport
    ];
}
