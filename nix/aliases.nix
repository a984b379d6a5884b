# Other names of services inside the cluster.
let
  inherit (builtins)
    concatMap
    filter
    listToAttrs
    map
    ;
  inherit (import ./lib.nix) sorted;
in
{
  # another name → the service
  # owners :: [Service] -> { alias = serviceName; }
  owners =
    services:
    listToAttrs (
      concatMap (
        s:
        map (name: {
          inherit name;
          value = s.name;
        }) s.aliases
      ) (filter (s: s.aliases != [ ]) services)
    );

  # What callers' entries have of those of a service that has some.
  # named :: String -> Service -> { aliases :: [String]; }
  named =
    trustDomain: service:
    {
      aliases = sorted (map (a: "${a}.${trustDomain}.rete") service.aliases);
    };
}
