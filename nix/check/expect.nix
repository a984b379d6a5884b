# Faults of access that the topology expects, and of access that it expects not to be there.
{
  clean,
  lib,
  ...
}@arguments:
let
  inherit (builtins)
    attrNames
    concatMap
    concatStringsSep
    elemAt
    filter
    genList
    head
    length
    match
    toJSON
    ;
  inherit (import ../lib) distinct isInvalid;
  inherit (lib)
    fault
    missing
    show
    suggest
    when
    ;
  inherit (clean) expect;
  expected = import ./expectednames.nix arguments;
  inherit (expected)
    meant
    named
    reserved
    sections
    ;
  unreserved = filter (n: !reserved ? ${n});

  each =
    i:
    let
      e = elemAt expect i;
      place = "expect[${toString i}]";
      found = meant e.who;
      full = p: toJSON "${p.type}/${p.name}";
    in
    if isInvalid e.who || e.who == "" then
      [ ]
    else if found == [ ] then
      [
        (fault {
          id = "FL158";
          place = "${place}.who";
          problem = "no user, host or service has the name";
          value = show e.who;
          remedy = suggest "user, host or service" e.who (
            if match "(node|service|user)/.*" e.who == null then
              concatMap (type: attrNames clean.${sections.${type}}) (attrNames sections)
            else
              let
                type = head (match "([a-z]+)/.*" e.who);
              in
              map (n: "${type}/${n}") (attrNames clean.${sections.${type}})
          );
        })
      ]
    else if length found > 1 then
      [
        (fault {
          id = "FL158";
          place = "${place}.who";
          problem = "the name belongs to a ${concatStringsSep " and to a " (map (p: p.type) found)}:";
          value = show e.who;
          remedy = "write ${concatStringsSep " or " (map full found)}";
        })
      ]
    else
      named "${place}.reaches" (unreserved e.reaches)
      ++ named "${place}.not" (unreserved e.not)
      ++ when (e.reaches == [ ] && e.not == [ ]) (
        missing place "reaches" "write reaches = [ \"…\" ]; or not = [ \"…\" ]; with services"
      )
      ++ (
        if (head found).type == "group" then
          concatMap (admitted "${place}.reaches" (head found).name) (distinct e.reaches)
          ++ concatMap (refused "${place}.not" (head found).name) (distinct e.not)
        else
          concatMap (reached "${place}.reaches" (head found)) (distinct e.reaches)
          ++ concatMap (unreached "${place}.not" (head found)) (distinct e.not)
      );

  untrue = place: n: problem: remedy: [
    (fault {
      id = "FL157";
      inherit place problem remedy;
      value = show n;
    })
  ];

  inherit
    (import ./expectedsignins.nix (arguments // { inherit expected untrue; }))
    admitted
    refused
    ;
  inherit
    (import ./expectedaccess.nix (arguments // { inherit expected untrue; }))
    reached
    unreached
    ;
in
if expect == [ ] then [ ] else concatMap each (genList (i: i) (length expect))
