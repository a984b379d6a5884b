# Bundles of foreign trust domains, for hosts that accept some of their identities, and the bundle
# endpoint of this trust domain (SPIFFE Federation).
let
  inherit (builtins) attrNames attrValues filter;
  inherit (import ../language/types) between default;
  federation = import ../access/federation.nix;
in
{
  doc = "Serves the bundle of this trust domain and fetches those of the domains in `federated`.";
  port = 5;
  alone = "each would number bundles of its own, which a foreign trust domain cannot put in order";
  settings.refresh =
    default "Seconds after which others fetch the bundle of this trust domain again." 300
      (between 1 86400 "seconds");
  policy = t: {
    inherit (t.providers.federation) refresh;
    trusts = map (
      f:
      {
        inherit (f)
          name
          trustDomain
          endpoint
          bundle
          ;
      }
      // (
        if f.profile == "https_spiffe" then
          { inherit (f) endpointID; }
        else
          { inherit (f) profile; }
          // (if f.endpointRoots == [ ] then { } else { inherit (f) endpointRoots; })
      )
    ) (attrValues t.federated);
  };

  reasons =
    clean:
    map (n: "federated.${n} needs it") (
      filter (n: clean.federated.${n}.identities != { } || clean.federated.${n}.services != { }) (
        attrNames clean.federated
      )
    );

  needs =
    t:
    let
      accepted = federation.on t;
    in
    host:
    map (n: {
      id = federation.need n;
      for = host.id;
      request = { inherit (t.federated.${n}) trustDomain; };
      files."bundle.json" = {
        value = "bundle";
        mode = "0444";
      };
      renew.atPercent = 50;
    }) (accepted host);
}
