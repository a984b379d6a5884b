# Faults of relays, and of hosts that are reached through them.
{
  clean,
  t,
  lib,
  ...
}:
let
  inherit (builtins)
    attrValues
    concatStringsSep
    elem
    filter
    head
    toJSON
    ;
  inherit (lib)
    attribute
    fault
    host
    missing
    when
    ;

  limits = import ../access/limits.nix;
  relays = map (h: h.name) (filter (h: h.relay) (attrValues t.hosts));
  none =
    place: value: problem: remedy:
    fault {
      id = "FL155";
      inherit
        place
        problem
        remedy
        value
        ;
    };
  limited = host: limits.any host.relayLimits;
in
{
  # Reports whether a host has limits of a relay.
  # limited :: Host -> Bool
  inherit limited;

  # Faults of the relays that a host or a group of hosts names.
  # named :: String -> [hostName] -> [Fault]
  named =
    place: names:
    host place names
    ++ map (
      n:
      none place "host ${n}" "it does not carry connections of others:"
        "write hosts.${attribute n}.relay = true;${
          if relays == [ ] then "" else ", or name one that does: ${concatStringsSep ", " relays}"
        }"
    ) (filter (n: t.hosts ? ${n} && !t.hosts.${n}.relay) names);

  # Faults of a host, from what was written and from the resolved topology.
  # itself :: hostName -> Host -> Host -> [Fault]
  itself =
    n: written: h:
    let
      place = "hosts.${attribute n}";
      hidden =
        value: remedy:
        fault {
          id = "FL156";
          place = "${place}.hidden";
          problem = "other hosts call it at its address, since it is";
          inherit value remedy;
        };
    in
    when (limited written && !h.relay) [
      (none "${place}.relayLimits" "host ${n}" "it does not carry connections of others:"
        "write ${place}.relay = true;, or remove the limits")
    ]
    ++ when (elem n written.relays && h.relay) [
      (none "${place}.relays" "host ${n}" "no host is its own relay:" "name other hosts")
    ]
    ++ when h.hidden (
      when (h.relays == [ ]) (
        missing place "relays"
          "others reach a hidden host through relays alone: write relays = [ ${
            if relays == [ ] then "\"…\"" else toJSON (head relays)
          } ];"
      )
      ++ when (clean.pathSalt == "") (
        missing "mkCluster" "pathSalt"
          "relays get names made from it for what is hidden: write pathSalt = \"…\"; with a random text, as openssl rand -hex 16 prints it"
      )
      ++ when h.relay [ (hidden "a relay" "take out relay = true; or hidden = true;") ]
      ++ when (h.kinds != [ ]) [
        (hidden "a provider" "name another host in providers.${head h.kinds}.hosts, or take out hidden = true;")
      ]
    );
}
