# A topology with changes to some of its parts.
{
  merge =
    let
      inherit (builtins) isAttrs mapAttrs;
      merge =
        a: b:
        if isAttrs a && isAttrs b then
          a // mapAttrs (n: v: if a ? ${n} then merge a.${n} v else v) b
        else
          b;
    in
    merge;
}
