# What is wrong with a topology beyond the shape of its parts, entry by entry, so that
# the faults that block one host are found without looking at everything:
# { top = [ … ]; hosts.<name> = [ … ]; services.<name> = [ … ]; …; warnings = { top = [ … ]; … }; }.
# `clean` is what was written, `shapes` are the faults of how, `topology` has its
# references followed.
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
  inherit (builtins) attrValues filter map;
  lib = import ./lib.nix topology;
  kinds = map (k: k.check arguments) (
    [ (import ../kinds/own.nix) ] ++ filter (k: k ? check) (attrValues (import ../kinds))
  );
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
  top = import ./cluster.nix arguments;
  hosts = import ./hosts.nix arguments;
  services = import ./services.nix arguments;
  warnings = import ./warnings.nix arguments;
}
// import ./access.nix arguments
