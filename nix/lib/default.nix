# What the parts of the compiler share and the builtins lack.
let
  inherit (builtins)
    attrNames
    elem
    filter
    foldl'
    genericClosure
    intersectAttrs
    length
    listToAttrs
    map
    mapAttrs
    ;
in
rec {
  # What stands for a value that was written wrongly. Whatever computes with values computes
  # with these: they are a string and a number that no rule takes.
  invalid = {
    string = "?";
    number = -1;
  };

  # Was the value written wrongly, and reported as that?
  # isInvalid :: Any -> Bool
  isInvalid = v: v == invalid.string || v == invalid.number;

  # A list, where a condition holds; else none.
  # when :: Bool -> [a] -> [a]
  when = condition: list: if condition then list else [ ];

  # The same for a set.
  # optionalAttrs :: Bool -> AttrSet -> AttrSet
  optionalAttrs = condition: set: if condition then set else { };

  # A list as the names of a set, to look one up: [ "a" ] → { a = null; }
  # toSet :: [String] -> AttrSet
  toSet =
    list:
    listToAttrs (
      map (name: {
        inherit name;
        value = null;
      }) list
    );

  # Those of a list that are names of a set, in their order.
  # known :: AttrSet -> [String] -> [String]
  known = set: filter (n: set ? ${n});

  # The attributes of a set with these names.
  # only :: [String] -> AttrSet -> AttrSet
  only = names: intersectAttrs (toSet names);

  # Names and all that they lead to, each once.
  # closure :: (String -> [String]) -> [String] -> [String]
  closure =
    next: names:
    map (e: e.key) (genericClosure {
      startSet = map (key: { inherit key; }) names;
      operator = e: map (key: { inherit key; }) (next e.key);
    });

  # Each once, in the order of their first places. For short lists.
  # distinct :: [a] -> [a]
  distinct = foldl' (seen: e: if elem e seen then seen else seen ++ [ e ]) [ ];

  # When roles end, by their names. The last of several ends counts. An end that was written wrongly
  # stays, as what stands for it, unless another one is there.
  # latest :: [{ role = Int; }] -> { role = Int; }
  latest = foldl' (
    sum: until:
    sum // mapAttrs (role: end: if sum ? ${role} && sum.${role} > end then sum.${role} else end) until
  ) { };

  # Each once, sorted.
  # sorted :: [String] -> [String]
  sorted = list: if length list < 2 then list else attrNames (toSet list);
}
