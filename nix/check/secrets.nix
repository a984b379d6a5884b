# Faults of generated secrets.
{
  clean,
  shapes,
  t,
  lib,
  ...
}:
let
  inherit (builtins)
    attrNames
    concatLists
    concatMap
    concatStringsSep
    elem
    elemAt
    filter
    genList
    head
    length
    match
    stringLength
    ;
  inherit (import ../lib) isInvalid toSet;
  inherit (import ../resolve/publichalf.nix) halves;
  inherit (import ../resolve/secrets.nix) hosts texts written;
  inherit (lib)
    excluded
    faultIf
    missing
    show
    unknown
    when
    ;
  inherit (clean.providers) config;
  groups = toSet (concatMap t.outward (attrNames clean.hostGroups));
  answering = filter (h: elem h config.hosts) clean.providers.secret.hosts;

  # A recorded public key that belongs to another generation.
  stale =
    n: s:
    let
      has = halves s;
    in
    faultIf (has != null && (has.generation != s.generation || has.generate != s.generate)) {
      id = "FL095";
      place = "secrets.${n}.public";
      problem = "the public half that is recorded is of another key, which no reader has any more:";
      value = "${has.generate} of generation ${toString has.generation}";
      remedy = "publish, wait until a reader has fetched it, and run florctl secret record";
    };

  # A file that all accounts can read.
  open =
    n: s: i:
    let
      inherit (elemAt s.readers i) mode;
    in
    faultIf (match "0.*[45]" mode != null) {
      id = "FL151";
      place = "secrets.${n}.readers[${toString i}].mode";
      problem = "every account of the reader's hosts could read the secret, with";
      value = show mode;
      remedy = "write mode = \"0440\"; or less, or acknowledge this";
    };
in
{
  entries.secrets =
    n: s:
    let
      place = "secrets.${n}";
      pair = !texts ? ${s.generate};
      reads =
        i:
        let
          r = elemAt s.readers i;
          at = "${place}.readers[${toString i}]";
        in
        when (!isInvalid r.service && !isInvalid r.host && shapes.secrets.${n} == [ ]) (
          when (r.service != "") (lib.service "${at}.service" [ r.service ])
          ++ when (r.host != "") (lib.host "${at}.host" [ r.host ])
          ++ when (r.group != "") (
            unknown "FL016" "group of hosts" groups "${at}.group" [ r.group ]
          )
          ++ when (length (written r) > 1) (
            excluded "make two readers of them" "${at}.${elemAt (written r) 1}"
              "${head (written r)} = ${show r.${head (written r)}}"
          )
          ++ when (written r == [ ]) (
            missing at "service" "write service = \"…\"; host = \"…\"; group = \"…\"; or tags = [ \"…\" ];"
          )
          ++ faultIf (r.tags != [ ] && length (written r) == 1 && hosts t r == [ ]) {
            id = "FL174";
            place = "${at}.tags";
            problem = "no host has all of these tags:";
            value = concatStringsSep ", " r.tags;
            remedy = "correct them, or write them into hosts.<name>.tags";
          }
          ++ faultIf (stringLength r.service + stringLength n > 55) {
            id = "FL025";
            place = at;
            problem = "names of service and secret together have at most 55 characters, these";
            value = toString (stringLength r.service + stringLength n);
            remedy = "shorten one of them";
          }
        );
    in
    # A secret with wrong values has been reported.
    when (shapes.secrets.${n} == [ ]) (
      when (s.readers == [ ]) (missing place "readers" "write readers = [ { service = \"…\"; } ];")
      ++ when (s.perHost && s.public != null) (
        excluded "take one of them out: with perHost, each host has a key pair of its own, and the file has the public half of one" "${place}.public"
          "perHost = true"
      )
      ++ when (pair && s.length != null) (
        excluded "take it out: such keys have one length" "${place}.length" "generate = ${show s.generate}"
      )
      ++ when (!pair && s.public != null) (
        excluded "take it out, or generate a key pair: age, ssh or wireguard" "${place}.public"
          "generate = ${show s.generate}"
      )
      ++ faultIf (s.public != null && s.rotate > 0) {
        id = "FL093";
        place = "${place}.rotate";
        problem = "the key would be replaced by itself, and the flake would have a former public half until somebody records the next one: found";
        value = toString s.rotate;
        remedy = "take rotate out and raise ${place}.generation, then run florctl secret record";
      }
      ++ faultIf (s.public != null && clean.providers.secret.hosts != [ ] && answering == [ ]) {
        id = "FL094";
        place = "${place}.public";
        problem = "operators read public halves at hosts of providers.config, and none of those provides secrets: found";
        value = concatStringsSep ", " clean.providers.secret.hosts;
        remedy = "name one of them in providers.config.hosts, or take public out";
      }
    )
    ++ concatLists (genList reads (length s.readers));
  warnings.entries.secrets =
    n: s:
    when (shapes.secrets.${n} == [ ]) (
      stale n s ++ concatLists (genList (open n s) (length s.readers))
    );
}
