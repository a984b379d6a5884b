# Warnings of secrets: a recorded public key that belongs to another generation, and files that all
# accounts can read.
{ lib, shapes }:
let
  inherit (builtins)
    concatLists
    elemAt
    genList
    length
    match
    ;
  inherit (lib) fault show when;
  inherit (import ../resolve/publichalf.nix) halves;

  stale =
    n: s:
    let
      has = halves s;
    in
    when (has != null && (has.generation != s.generation || has.generate != s.generate)) [
      (fault {
        id = "FL095";
        place = "secrets.${n}.public";
        problem = "the public half that is recorded is of another key, which no reader has any more:";
        value = "${has.generate} of generation ${toString has.generation}";
        remedy = "publish, wait until a reader has fetched it, and run florctl secret record";
      })
    ];

  open =
    n: s: i:
    let
      inherit (elemAt s.readers i) mode;
    in
    when (match "0.*[45]" mode != null) [
      (fault {
        id = "FL151";
        place = "secrets.${n}.readers[${toString i}].mode";
        problem = "every account of the reader's hosts could read the secret, with";
        value = show mode;
        remedy = "write mode = \"0440\"; or less, or acknowledge this";
      })
    ];
in
# String -> Secret -> [Fault]
n: s:
when (shapes.secrets.${n} == [ ]) (stale n s ++ concatLists (genList (open n s) (length s.readers)))
