# Host groups: what hosts have from those they are in. "eu/fra" is in "eu".
# clean topology -> { outward; hosts; }
clean:
let
  inherit (builtins)
    concatMap
    concatStringsSep
    elemAt
    filter
    genList
    isString
    length
    listToAttrs
    map
    mapAttrs
    split
    ;

  # "eu/fra" → [ "eu" "eu/fra" ]
  outward =
    group:
    let
      labels = filter isString (split "/" group);
    in
    genList (i: concatStringsSep "/" (genList (elemAt labels) (i + 1))) (length labels);

  # What a host has from the groups it is in, from the outside in, and itself.
  inherited =
    host: attribute:
    concatMap (g: clean.hostGroups.${g}.${attribute} or [ ]) (outward host.group) ++ host.${attribute};
in
{
  inherit outward;
  hosts = mapAttrs (
    _: host:
    if host.group == "" then
      host
    else
      host
      // listToAttrs (
        map
          (name: {
            inherit name;
            value = inherited host name;
          })
          [
            "capabilities"
            "roles"
            "tags"
            "users"
          ]
      )
  ) clean.hosts;
}
