# Faults of a topology beyond the shape of its parts, by entry, so that the faults that block one
# host are found without computing all others:
# { top = [ … ]; hosts.<name> = [ … ]; services.<name> = [ … ]; …; warnings = { top = [ … ]; … }; }.
# `clean` is the written topology with wrong values replaced, `shapes` its faults of shape, and
# `topology` has its references followed.
# AttrSet -> Faults
{
  clean,
  shapes,
  topology,
  access,
  needs,
  wanted,
}:
let
  inherit (builtins)
    attrValues
    concatMap
    filter
    mapAttrs
    ;
  lib = import ./lib.nix topology;
  # Faults that belong to one kind of need, and warnings.
  entries =
    of:
    mapAttrs (
      attribute: _:
      mapAttrs (n: e: concatMap (k: (k.${attribute} or (_: _: [ ])) n e) of) clean.${attribute}
    ) (import ../language).ofKinds;
  kinds = map (k: k.check arguments) (
    [ (import ../kinds/own.nix) ] ++ filter (k: k ? check) (attrValues (import ../kinds))
  );
  federation = import ./federation.nix arguments;
  clusters = import ./clusters.nix arguments;
  arguments = {
    inherit
      access
      clean
      kinds
      needs
      shapes
      lib
      wanted
      ;
    t = topology;
  };
in
{
  top = import ./cluster.nix arguments ++ federation.top ++ clusters.top;
  inherit (federation) federated;
  inherit (clusters) clusters;
  hosts = import ./hosts.nix arguments;
  services = import ./services.nix arguments;
  outside = import ./outside.nix arguments;
  warnings = import ./warnings.nix arguments // entries (map (k: k.warnings.entries or { }) kinds);
}
// entries (map (k: k.entries or { }) kinds)
// import ./access.nix arguments
