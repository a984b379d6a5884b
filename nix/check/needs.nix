# Faults of the needs of a host.
{
  lib,
  needs,
  wanted,
  ...
}:
let
  inherit (builtins)
    attrNames
    concatStringsSep
    concatMap
    elem
    filter
    genericClosure
    listToAttrs
    ;
  inherit (lib) faultIf twice unknown;

  # Need → the needs that it waits for, for needs whose dependsOn somebody wrote.
  waiting =
    n: written:
    let
      after = listToAttrs (
        map (need: {
          name = need.id;
          value = need.dependsOn;
        }) needs.${n}
      );
      reached =
        id:
        map (e: e.key) (genericClosure {
          startSet = map (key: { inherit key; }) after.${id};
          operator = e: map (key: { inherit key; }) (after.${e.key} or [ ]);
        });
      circular = filter (id: elem id (reached id)) (attrNames after);
    in
    concatMap (w: unknown "FL019" "need of host ${n}" after "${w.place}.dependsOn" w.dependsOn) written
    ++ faultIf (circular != [ ]) {
      id = "FL033";
      place = "hosts.${n}";
      problem = "needs that wait for each other, so that none is ever fetched:";
      value = concatStringsSep ", " circular;
      remedy = "take one of them out of the other's dependsOn";
    };

  sameNeed =
    n:
    twice {
      id = "FL024";
      key = w: w.id;
      place = w: w.place or "hosts.${n}";
      what = w: w.what or "a need of kind ${w.kind}";
      problem = other: "on host ${n}, ${other} already has the need";
      remedy =
        other: w:
        if w ? again && w.what == other.what then w.again else "give one of them another name";
    };
in
n:
let
  inherit (wanted.${n}) repeated;
  written = wanted.${n}.waiting;
in
(if repeated == [ ] then [ ] else sameNeed n repeated)
++ (if written == [ ] then [ ] else waiting n written)
