# Lists the other way round: from things with a name and a function that gives each its
# list, { <element> = [ <name> … ]; }, the sorted names of those whose list has the element.
#
# Of ten thousand things most have one of a few lists: each list is turned once for all who
# have it. Nothing is looked up by name, which in large sets costs more than the rest.
#
#   invert (host: host.tags) [ { name = "a"; tags = [ "x" "y" ]; } { name = "b"; tags = [ "x" ]; } ]
#   → { x = [ "a" "b" ]; y = [ "a" ]; }
#
# invert :: (Thing -> [String]) -> [Thing] -> { element = [name]; }
list: things:
let
  inherit (builtins)
    attrValues
    concatLists
    groupBy
    head
    lessThan
    listToAttrs
    map
    sort
    tail
    toJSON
    zipAttrsWith
    ;
  # JSON takes longer than to see that there is one.
  key =
    list:
    if list == [ ] then
      ""
    else if tail list == [ ] then
      "1${head list}"
    else
      toJSON list;
  alike = attrValues (groupBy (thing: key (list thing)) things);
  turned =
    things:
    let
      names = map (thing: thing.name) things;
    in
    listToAttrs (
      map (name: {
        inherit name;
        value = names;
      }) (list (head things))
    );
in
zipAttrsWith (
  _: parts: if tail parts == [ ] then head parts else sort lessThan (concatLists parts)
) (map turned alike)
