# The needs of each host, with their providers and files: derived by the kinds from what runs on the
# host. Nobody configures needs.
topology:
let
  inherit (builtins)
    attrValues
    concatMap
    filter
    length
    listToAttrs
    mapAttrs
    ;
  t = topology;

  # Common values are shared by all needs.
  none = { };
  nothing = [ ];
  first = [ "cert-node" ];

  # A need in the form of a manifest. Kinds omit default values, set `files` and `owner` or else
  # `deliver`, and add attributes for error messages:
  #   place   where a person may have written its dependsOn, such as "services.wiki.sso"
  #   what    its name in the error if another need has its ID
  #   again   the remedy if the other need has the same name in errors
  complete =
    kind: own:
    {
      id,
      for,
      request,
      files ? none,
      owner ? "",
      deliver ? { inherit files owner; },
      restart ? "",
      after ? first,
      dependsOn ? nothing,
      renew ? none,
      generation ? 1,
      providers ? own,
      ...
    }:
    {
      inherit
        id
        kind
        for
        request
        renew
        generation
        deliver
        providers
        ;
      onChange = if restart == "" then [ ] else [ restart ];
      dependsOn = after ++ dependsOn;
    };

  # The needs of hosts by kind, each with its form in a manifest.
  kinds = attrValues (
    mapAttrs (
      kind: k:
      let
        wants = k.needs t;
        of = complete kind t.providers.${kind}.hosts;
      in
      host:
      map (want: {
        inherit kind want;
        name = want.id;
        value = of want;
      }) (wants host)
    ) t.kinds
  );
  each = mapAttrs (
    _: host:
    let
      all = concatMap (of: of host) kinds;
      needs = attrValues (listToAttrs all);
      written = map (n: n.want // { inherit (n) kind; });
    in
    {
      inherit needs;
      # Only one of several needs with one ID remains.
      repeated = if length needs == length all then [ ] else written all;
      waiting = written (filter (n: n.want.dependsOn or [ ] != [ ]) all);
    }
  ) t.hosts;
in
{
  # host → the needs that a check examines: all if two have one ID, and those that wait for others.
  # Most hosts have none, and the other needs are not kept.
  # wanted :: { hostName = { repeated, waiting :: [Need]; }; }
  wanted = each;

  # host → its needs, sorted by id
  # needs :: { hostName = [Need]; }
  needs = mapAttrs (_: of: of.needs) each;
}
