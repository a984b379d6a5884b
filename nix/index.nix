# Lists the other way round: from names and a function that gives each its list,
# { <element> = [ <name> … ]; }, sorted names of those whose list has the element. Of ten
# thousand most have one of a few lists, so each list is turned once for all who have it.
list: names:
let
  inherit (builtins)
    attrValues
    concatLists
    groupBy
    head
    lessThan
    map
    mapAttrs
    sort
    tail
    toJSON
    zipAttrsWith
    ;
  alike = attrValues (groupBy (name: toJSON (list name)) names);
  turned = names: mapAttrs (_: _: names) (groupBy (element: element) (list (head names)));
in
zipAttrsWith
  (_: parts: if tail parts == [ ] then head parts else sort lessThan (concatLists parts))
  (map turned alike)
