# What the parts of the compiler share and the builtins lack.
let
  inherit (builtins)
    attrNames
    attrValues
    concatLists
    elem
    filter
    foldl'
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

  # Lists the other way round: from things with a name and a function that gives each its list,
  # the sorted names of those whose list has an element. Of ten thousand things most have one of a
  # few lists: each list is turned once for all who have it.
  #   invert (host: host.tags) [ { name = "a"; tags = [ "x" "y" ]; } { name = "b"; tags = [ "x" ]; } ]
  #   → { x = [ "a" "b" ]; y = [ "a" ]; }
  # invert :: (Thing -> [String]) -> [Thing] -> { element = [name]; }
  invert =
    list: things:
    let
      # JSON takes longer than to see that there is one.
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

  # The time of an evaluation, which knows no clock: that of its documents.
  # time :: clean topology -> Unix seconds
  time = clean: if clean.serial == null then clean.self.lastModified or 0 else clean.serial;
}
