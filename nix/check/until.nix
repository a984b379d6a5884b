# Faults and warnings of roles that somebody has up to a time.
{ clean, lib, ... }:
let
  inherit (builtins) attrNames filter map;
  inherit (lib)
    fault
    reserved
    role
    show
    when
    ;
  now = import ../now.nix clean;
in
{
  # faults :: String -> { roles, until, … } -> [Fault]
  faults =
    place: holder:
    role "${place}.until" (attrNames holder.until)
    ++ when (holder.until ? node) [ (reserved "${place}.until" "node") ]
    ++ map (
      r:
      fault {
        id = "FL117";
        place = "${place}.until";
        problem = "${place}.roles has it without an end:";
        value = show r;
        remedy = "take it out of one of them";
      }
    ) (filter (r: holder.until ? ${r}) holder.roles);

  # warnings :: String -> { roles, until, … } -> [Fault]
  warnings =
    place: holder:
    map (
      r:
      fault {
        id = "FL118";
        place = "${place}.until";
        problem = "this has ended, and gives nothing any more:";
        value = show r;
        remedy = "take it out";
      }
    ) (filter (r: holder.until.${r} >= 0 && holder.until.${r} <= now) (attrNames holder.until));
}
