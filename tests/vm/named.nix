# revisions → text of a script → those that it names, as "NAME", in the order in which
# it first names them.
revisions: text:
let
  inherit (builtins)
    elem
    filter
    foldl'
    isString
    split
    ;
  # Of what stands between quotes, whichever end of a string these are.
  words = filter (w: isString w && elem w revisions) (split "\"" text);
in
foldl' (seen: w: if elem w seen then seen else seen ++ [ w ]) [ ] words
