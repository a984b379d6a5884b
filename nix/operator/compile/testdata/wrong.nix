# Replaces each value of some topologies of ../../../../tests/golden/compiler, one at a time, by
# values that are wrong there, evaluates the faults and the topology of each of these clusters, and
# returns their number. The replaced value is traced first: the last line before a stack trace names
# its place.
{ cases }:
let
  inherit (builtins)
    attrNames
    concatMap
    deepSeq
    elemAt
    foldl'
    genList
    head
    isAttrs
    isList
    length
    substring
    tail
    toJSON
    trace
    tryEval
    ;
  golden = ../../../../tests/golden/compiler;
  inherit (import ../../../.) mkCluster;
  inherit (import ../../../lib/names.nix) sri;
  inherit (import (golden + "/merge.nix")) merge;
  key = name: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA" + substring 8 42 (sri name);
  base = import (golden + "/base.nix") { inherit key; };

  leaves =
    v:
    let
      below = step: inner: map (path: [ step ] ++ path) (leaves inner);
    in
    if isAttrs v then
      concatMap (n: below n v.${n}) (attrNames v)
    else if isList v && v != [ ] then
      concatMap (i: below i (elemAt v i)) (genList (i: i) (length v))
    else
      [ [ ] ];
  put =
    new: v: path:
    let
      inner = old: put new old (tail path);
    in
    if path == [ ] then
      new
    else if isAttrs v then
      v // { ${head path} = inner v.${head path}; }
    else
      genList (i: if i == head path then inner (elemAt v i) else elemAt v i) (length v);

  wrong = [
    (-1)
    "2027-02-30"
    { "?" = null; }
    [ (throw "wrong") ]
  ];
  shown =
    value:
    let
      try = tryEval (deepSeq value value);
    in
    if try.success then toJSON try.value else "what throws";
  tried =
    case:
    let
      topology = import (golden + "/${case}/topology.nix") { inherit base key merge; };
    in
    concatMap (path: map (value: { inherit case topology path value; }) wrong) (leaves topology);
  found =
    e:
    let
      cluster = mkCluster (put e.value e.topology e.path);
    in
    trace "${e.case}: ${toJSON e.path} = ${shown e.value}" (
      deepSeq [
        cluster.faults
        cluster.topology
      ] 1
    );
in
foldl' (sum: e: sum + found e) 0 (concatMap tried cases)
