# Documents, for hosts that receive them over the network.
let
  inherit (builtins) any attrValues;
  inherit (import ../language/types) default;
  inherit (import ../language/formats) seconds;
in
{
  doc = "Distributes documents to hosts.";
  port = 1;
  apart = "each has only what was published to it, and an audit log of its own";
  settings = {
    interval = default "Seconds after which hosts ask again for newer documents." 900 seconds;
    staleAfter =
      default "Seconds without an answer after which a host raises an alarm. More than `interval`."
        86400
        seconds;
  };

  needs =
    t: host:
    if t.providers.config.hosts == [ ] || host.deploy != "network" then
      [ ]
    else
      [
        {
          id = "config-documents";
          for = host.id;
          request = { };
          renew = { inherit (t.providers.config) interval staleAfter; };
        }
      ];

  check =
    { clean, lib, ... }:
    let
      inherit (lib) faultIf;
      inherit (clean.providers.config) hosts interval staleAfter;
    in
    {
      # A wrong value is negative, and has been reported.
      top =
        faultIf (staleAfter >= 0 && staleAfter <= interval) {
          id = "FL009";
          place = "providers.config.staleAfter";
          problem = "hosts would raise the alarm between two requests, which come every ${toString interval} seconds: found";
          value = toString staleAfter;
          remedy = "write more than providers.config.interval, 86400 for a day";
        }
        ++
          faultIf
            (
              clean.trust.signingKeys == [ ]
              && hosts != [ ]
              && any (h: h.deploy == "network") (attrValues clean.hosts)
            )
            {
              id = "FL008";
              place = "trust.signingKeys";
              problem = "hosts would refuse every document from providers.config, for they pin";
              value = "no key";
              remedy = "make one with `nix key generate-secret` and write its public half, trust.signingKeys = [ \"name:base64\" ];";
            };
    };
}
