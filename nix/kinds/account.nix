# Shared by kinds whose needs are accounts at servers that are services of the cluster, like their
# providers (../../providers/serveraccount). The arguments of such a kind:
#
#   kind     its name
#   needed   attribute of services.<name> with the needs, by name
#   what     a word for one of them, for people
#   servers  attribute of providers.<kind> with the servers, by name
#   called   service → name → need → name of its account at the server
{
  kind,
  needed,
  what,
  servers,
  called,
}:
let
  inherit (builtins)
    any
    attrNames
    attrValues
    concatMap
    elem
    filter
    groupBy
    head
    length
    listToAttrs
    mapAttrs
    match
    stringLength
    substring
    ;
  inherit (import ../lib) isInvalid when;
  names = import ../lib/names.nix;

  place = s: n: "services.${s.name}.${needed}.${n}";

  # A function of all needs of some services.
  each = f: concatMap (s: map (f s) (attrNames s.${needed}));

  # Files with one value each, of the same mode.
  files =
    mode: values:
    listToAttrs (
      map (value: {
        name = value;
        value = { inherit value mode; };
      }) values
    );
in
{
  # The servers in the form that providers read. unwritten: server → its service → the address if
  # none is written.
  # policy :: (Server -> Service -> String) -> Topology -> { name = { … }; }
  policy =
    unwritten: t:
    mapAttrs (
      _: s:
      let
        at = t.services.${s.service};
        own = if at.scope == "node" then ".${head at.hosts}" else "";
      in
      {
        inherit (s) kind user;
        address = if s.address == "" then unwritten s at else s.address;
        host = names.called "${s.service}${own}" t.trustDomain;
        port = at.listenPort;
      }
    ) t.providers.${kind}.${servers};

  reasons = clean: each (s: n: "${place s n} needs it") (attrValues clean.services);

  # The needs of a host. of: topology → need → name of the account → { request; public; secret;
  # renew; }: values in files that everybody may read, and in files that only the service's user may
  # read.
  # needs :: (Topology -> Any -> String -> { … }) -> Topology -> Host -> [Need]
  needs =
    of: t: host:
    each (
      s: n:
      let
        need = s.${needed}.${n};
        its = of t need (called s.name n need);
      in
      {
        id = "${kind}-${s.name}-${n}";
        for = s.idOn host.name;
        files = files "0444" its.public // files "0400" its.secret;
        owner = s.user;
        inherit (its) request renew;
        inherit (need) restart dependsOn generation;
        place = place s n;
        what = "${what} ${n} of service ${s.name}";
      }
    ) host.wanting;

  label =
    need:
    "${kind}-${
      substring (stringLength "${kind}-" + stringLength (names.service need.for) + 1) (-1) need.id
    }";

  # Faults. wrong: the arguments of check/ → { server; needed; }, further faults: of a server at a
  # place, and of a need by service and name.
  # check :: { … } -> AttrSet -> { … }
  check =
    {
      server, # a word for the servers, for people
      # server → its service → pattern of the upstreams that a provider on the same host can reach
      # without a written address; null if there are none
      reached,
      at, # words for these upstreams, and an example of an address
      unknown, # rules and texts: unknown server, two needs with one account, unreachable server
      taken,
      unreached,
      wrong,
    }:
    {
      access,
      clean,
      t,
      lib,
      ...
    }@has:
    let
      inherit (lib) faultIf show;
      inherit (clean.providers.${kind}) hosts;
      all = clean.providers.${kind}.${servers};
      besides = wrong has;

      # The needs for each account at a server, of which only one is allowed.
      for = groupBy (d: d.key) (
        each (s: n: {
          key = "${s.${needed}.${n}.on}/${called s.name n s.${needed}.${n}}";
          place = place s n;
        }) (attrValues clean.services)
      );
    in
    {
      top = concatMap (
        n:
        let
          s = all.${n};
          here = "providers.${kind}.${servers}.${n}";
          service = t.services.${s.service};
          pattern = reached s service;
          listens = any (h: elem h hosts) service.hosts && match pattern service.upstream != null;
          lacks = t.services ? ${s.service} && pattern != null && !listens;
        in
        lib.service "${here}.service" [ s.service ]
        ++ besides.server here s
        ++ when (s.address == "" && hosts != [ ] && lacks) (
          lib.missing here "address"
            "the service does not listen on a host of providers.${kind}, at ${at.place}: name the one where it runs there, or write address = \"${at.example}\"; of what leads to it"
        )
      ) (attrNames all);

      service =
        _: s:
        concatMap (
          n:
          let
            here = place s n;
            account = called s.name n s.${needed}.${n};
            inherit (s.${needed}.${n}) on;
            others = filter (o: o.place != here) for."${on}/${account}";
          in
          lib.unknown unknown server all "${here}.on" [ on ]
          ++ besides.needed s n
          ++ faultIf (others != [ ] && !isInvalid on) {
            inherit (taken) id;
            place = here;
            problem = taken.problem (head others).place;
            value = show account;
            remedy = "choose another name for one of them";
          }
        ) (attrNames s.${needed});

      # Without access to the server's service, the account is useless.
      warnings.service =
        _: s:
        let
          holders = [ t.services.${s.name} ] ++ map (h: t.hosts.${h}) t.services.${s.name}.hosts;
          reaches = of: any (p: any (r: elem r access.leading.${of} or [ ]) p.roles) holders;
        in
        concatMap (
          n:
          let
            of = all.${s.${needed}.${n}.on}.service or "";
          in
          faultIf (t.services ? ${of} && length t.services.${s.name}.hosts > 0 && !reaches of) {
            inherit (unreached) id problem;
            place = place s n;
            value = "service ${of}";
            remedy = "give services.${s.name}.roles a role that reaches ${of}";
          }
        ) (attrNames s.${needed});
    };
}
