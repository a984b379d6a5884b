# What a host must fetch, from whom, and where it goes: derived from what runs on it, as
# the kinds define. Nobody configures needs.
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

  # What most have is one value for all.
  none = { };
  nothing = [ ];
  first = [ "cert-node" ];

  # As it is in a manifest. Kinds leave out what is usual, have `files` and `owner` or else
  # `deliver`, and add for people:
  #   place   where a person may have written its dependsOn, such as "services.wiki.sso"
  #   what    what it is called where another has its ID
  complete =
    kind: providers:
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

  # What kinds want of hosts, each with what that is in a manifest.
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
      # Of several with one id one is left.
      repeated = if length needs == length all then [ ] else written all;
      waiting = written (filter (n: n.want.dependsOn or [ ] != [ ]) all);
    }
  ) t.hosts;
in
{
  # host → what the kinds need there, as far as there is something to check: all of it where two
  # have one id, and what waits for others. Mostly nothing, and the rest is not kept.
  # wanted :: { hostName = { repeated, waiting :: [Need]; }; }
  wanted = each;

  # host → its needs, sorted by id
  # needs :: { hostName = [Need]; }
  needs = mapAttrs (_: of: of.needs) each;
}
