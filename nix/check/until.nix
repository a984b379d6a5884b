# Faults and warnings of roles and team memberships with an end.
{ clean, lib, ... }:
let
  inherit (builtins) attrNames filter;
  inherit (lib)
    fault
    reserved
    role
    show
    user
    when
    ;
  now = (import ../lib).time clean;

  ended =
    place: until:
    map (
      r:
      fault {
        id = "FL118";
        inherit place;
        problem = "this has ended, and gives nothing any more:";
        value = show r;
        remedy = "take it out";
      }
    ) (filter (r: until.${r} >= 0 && until.${r} <= now) (attrNames until));
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

  # Faults of the members of a team.
  # members :: String -> { users, usersUntil, … } -> [Fault]
  members =
    place: team:
    user "${place}.usersUntil" (attrNames team.usersUntil)
    ++ map (
      u:
      fault {
        id = "FL117";
        place = "${place}.usersUntil";
        problem = "${place}.users has it without an end:";
        value = show u;
        remedy = "take it out of one of them";
      }
    ) (filter (u: team.usersUntil ? ${u}) team.users);

  # warnings :: String -> { roles, until, … } -> [Fault]
  warnings =
    place: holder: ended "${place}.until" holder.until;

  # Warnings of the members of a team.
  # membersEnded :: String -> { usersUntil, … } -> [Fault]
  membersEnded = place: team: ended "${place}.usersUntil" team.usersUntil;
}
