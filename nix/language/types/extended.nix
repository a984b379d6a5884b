# The type of a record that has sets beside its attributes, `others`, of names that people
# choose. The reference calls one of them `called`. What is no set is none of them.
let
  inherit (builtins)
    attrNames
    filter
    intersectAttrs
    isAttrs
    removeAttrs
    tryEval
    ;
  inherit (import ../../lib) toSet;
in
{
  # extended :: Type -> String -> Type -> Type
  extended =
    type: called: others:
    let
      named = v: filter (n: !type.about.fields ? ${n} && (tryEval (isAttrs v.${n})).value) (attrNames v);
      own = v: removeAttrs v (named v);
      rest = v: intersectAttrs (toSet (named v)) v;
    in
    type
    // {
      about = type.about // {
        others = {
          inherit called;
          about = others.about.of;
        };
      };
      faults =
        place: v:
        if isAttrs v then
          type.faults place (own v) ++ others.faults place (rest v)
        else
          type.faults place v;
      sound = _: false; # there is one of them
      clean = v: if isAttrs v then type.clean (own v) // others.clean (rest v) else type.clean v;
    };
}
