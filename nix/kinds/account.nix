# What kinds share whose needs are accounts at servers that are services of the cluster, as their
# providers do (../../providers/serveraccount). Of such a kind:
#
#   kind     its name
#   needed   attribute of services.<name> with what is needed there, by names
#   what     what one of these is called, for people
#   servers  attribute of providers.<kind> with the servers, by names
#   called   service → name → what is needed → how its account at the server is called
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

  # Of all that some services need.
  each = f: concatMap (s: map (f s) (attrNames s.${needed}));

  # Files of values, of which all read some.
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
  # The servers as providers read them. unwritten: server → its service → address where none is.
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

  # Needs of a host. of: topology → what is needed → how it is called → { request; public; secret;
  # renew; }: values that all read in files, and that the service's user reads.
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

  # What is wrong. wrong: what check/ has → { server; needed; }, faults besides these: of a server,
  # at a place, and of what is needed: service → name → faults.
  # check :: { … } -> AttrSet -> { … }
  check =
    {
      server, # what servers are called
      # server → its service → pattern of upstreams at which a provider on its host reaches it where no
      # address is written; null where there is no such upstream
      reached,
      at, # where that is, and an example of an address
      unknown, # rules, and problems of two of one account, and of a server out of reach
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
      inherit (lib) fault show;
      inherit (clean.providers.${kind}) hosts;
      all = clean.providers.${kind}.${servers};
      besides = wrong has;

      # What an account at a server is for, of which one is right.
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
          ++ when (others != [ ] && !isInvalid on) [
            (fault {
              inherit (taken) id;
              place = here;
              problem = taken.problem (head others).place;
              value = show account;
              remedy = "choose another name for one of them";
            })
          ]
        ) (attrNames s.${needed});

      # It is of no use to whom no forwarder lets through.
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
          when (t.services ? ${of} && length t.services.${s.name}.hosts > 0 && !reaches of) [
            (fault {
              inherit (unreached) id problem;
              place = place s n;
              value = "service ${of}";
              remedy = "give services.${s.name}.roles a role that reaches ${of}";
            })
          ]
        ) (attrNames s.${needed});
    };
}
