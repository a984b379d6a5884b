# Groups of hosts as paths, from the outside in: "eu/fra" is [ "eu" "fra" ].
let
  inherit (builtins)
    elemAt
    filter
    genList
    head
    isList
    length
    split
    ;
  rest = list: genList (i: elemAt list (i + 1)) (length list - 1);
in
rec {
  # path :: String -> [String]
  path = group: filter (p: !isList p && p != "") (split "/" group);

  # How many groups two paths have in common, from the outside in.
  # shared :: [String] -> [String] -> Int
  shared =
    a: b: if a == [ ] || b == [ ] || head a != head b then 0 else 1 + shared (rest a) (rest b);
}
