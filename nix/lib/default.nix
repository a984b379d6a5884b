# Shared functions that the builtins lack.
let
  inherit (builtins)
    attrNames
    attrValues
    concatLists
    elem
    elemAt
    filter
    foldl'
    genList
    genericClosure
    groupBy
    head
    intersectAttrs
    isList
    length
    lessThan
    listToAttrs
    mapAttrs
    sort
    split
    tail
    toJSON
    zipAttrsWith
    ;
in
rec {
  # Replacements for wrong values. All computations use them; no rule accepts this string or this
  # number.
  invalid = {
    string = "?";
    number = -1;
  };

  # Reports whether a value was wrong, which has been reported.
  # isInvalid :: Any -> Bool
  isInvalid = v: v == invalid.string || v == invalid.number;

  # A list if a condition holds, else [ ].
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

  # A set from the names of its attributes and a function that returns the value of each.
  # genAttrs :: [String] -> (String -> a) -> { name = a; }
  genAttrs =
    names: value:
    listToAttrs (
      map (name: {
        inherit name;
        value = value name;
      }) names
    );

  # A set from values with names.
  # named :: [Thing] -> { name = Thing; }
  named =
    things:
    listToAttrs (
      map (value: {
        inherit (value) name;
        inherit value;
      }) things
    );

  # The elements of a list that are names in a set, in their order.
  # known :: AttrSet -> [String] -> [String]
  known = set: filter (n: set ? ${n});

  # The attributes of a set with some names.
  # only :: [String] -> AttrSet -> AttrSet
  only = names: intersectAttrs (toSet names);

  # Names and everything that they lead to, each once.
  # closure :: (String -> [String]) -> [String] -> [String]
  closure =
    next: names:
    map (e: e.key) (genericClosure {
      startSet = map (key: { inherit key; }) names;
      operator = e: map (key: { inherit key; }) (next e.key);
    });

  # The elements of a list, each at its first place. For short lists.
  # distinct :: [a] -> [a]
  distinct = foldl' (seen: e: if elem e seen then seen else seen ++ [ e ]) [ ];

  # The latest end of each role. A wrong end remains, as its replacement, unless there is another.
  # latest :: [{ role = Int; }] -> { role = Int; }
  latest = foldl' (
    sum: until:
    sum // mapAttrs (role: end: if sum ? ${role} && sum.${role} > end then sum.${role} else end) until
  ) { };

  # The elements of a list, each once and sorted.
  # sorted :: [String] -> [String]
  sorted = list: if length list < 2 then list else attrNames (toSet list);

  # The first elements of a list, at most n.
  # first :: Int -> [a] -> [a]
  first = n: list: if length list <= n then list else genList (elemAt list) n;

  # Inverts lists: from things with a name and a function that returns the list of each, the sorted
  # names of the things by element. Of ten thousand things most share a few lists, and each list is
  # inverted once.
  #   invert (host: host.tags) [ { name = "a"; tags = [ "x" "y" ]; } { name = "b"; tags = [ "x" ]; } ]
  #   → { x = [ "a" "b" ]; y = [ "a" ]; }
  # invert :: (Thing -> [String]) -> [Thing] -> { element = [name]; }
  invert =
    list: things:
    let
      # Encoding as JSON takes longer than this check.
      key =
        list:
        if list == [ ] then
          ""
        else if tail list == [ ] then
          "1${head list}"
        else
          toJSON list;
      turned =
        alike:
        let
          value = map (thing: thing.name) alike;
        in
        listToAttrs (map (name: { inherit name value; }) (list (head alike)));
    in
    zipAttrsWith (
      _: parts: if tail parts == [ ] then head parts else sort lessThan (concatLists parts)
    ) (map turned (attrValues (groupBy (thing: key (list thing)) things)));

  # A group of hosts as a path, from the outside in: "eu/fra" is [ "eu" "fra" ].
  # path :: String -> [String]
  path = group: filter (p: !isList p && p != "") (split "/" group);

  # How many groups two paths have in common, from the outside in.
  # shared :: [String] -> [String] -> Int
  shared =
    a: b: if a == [ ] || b == [ ] || head a != head b then 0 else 1 + shared (tail a) (tail b);

  # The time of an evaluation, which has no clock: the time of its documents.
  # time :: clean topology -> Unix seconds
  time = clean: if clean.serial == null then clean.self.lastModified or 0 else clean.serial;
}
