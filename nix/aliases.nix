# Other names of services inside the cluster.
let
  inherit (builtins)
    concatMap
    filter
    listToAttrs
    map
    ;
  inherit (import ./lib.nix) optionalAttrs sorted;
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

  # What callers' entries have of them.
  # named :: String -> Service -> { aliases :: [String]; } | { }
  named =
    trustDomain: service:
    optionalAttrs (service.aliases != [ ]) {
      aliases = sorted (map (a: "${a}.${trustDomain}.rete") service.aliases);
    };
}
