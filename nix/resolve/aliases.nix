# Computes the aliases of services, which are additional names for them inside the cluster.
let
  inherit (builtins) concatMap filter listToAttrs;
  inherit (import ../lib) optionalAttrs sorted;
  inherit (import ../lib/names.nix) called;

  unnamed = _: { };
in
{
  # alias → the service
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

  # The aliases in callers' entries. Only the ID that all hosts of a service share has aliases.
  # named :: String -> Service -> id -> (id -> { aliases :: [String]; } | { })
  named =
    trustDomain: service: shared:
    if service.aliases == [ ] then
      unnamed
    else
      id:
      optionalAttrs (id == shared) {
        aliases = sorted (map (a: called a trustDomain) service.aliases);
      };
}
