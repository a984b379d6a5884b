# revisions → text of a script → the revisions that it names, as "NAME", in the order of their first
# mention.
revisions: text:
let
  inherit (builtins)
    elem
    filter
    foldl'
    isString
    split
    ;
  # The texts between quotes. Both sides of a quote are searched.
  words = filter (w: isString w && elem w revisions) (split "\"" text);
in
foldl' (seen: w: if elem w seen then seen else seen ++ [ w ]) [ ] words
