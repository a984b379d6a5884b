# Tokens for repositories of forges that are services of the cluster.
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
    map
    mapAttrs
    match
    stringLength
    substring
    ;
  inherit (import ../types.nix) named of;
  inherit (import ../language/git.nix) forge token;
  inherit (import ../lib.nix) isInvalid sorted;
  names = import ../names.nix;

  # The account of a token at its forge.
  account = service: n: "florete-${service}-${n}";
in
{
  doc = "makes tokens for repositories of forges of the cluster";
  port = 11; # the tenth would be that of forwarders, where neither is written
  alone = "each would make tokens of its own, and end those of the others";
  settings.forges = of "forges, by name" (named { what = "forge"; } forge);
  service.git =
    of
      "tokens for repositories that it needs, made by providers.git; delivered as `needs/git-<service>-<token>/current/credentials`, as helpers of git print them, and in parts: `url`, `user`, `token`"
      (named { what = "token"; } token);

  policy = t: {
    forges = mapAttrs (
      _: f:
      let
        at = t.services.${f.service};
        own = if at.scope == "node" then ".${head at.hosts}" else "";
        unwritten = if f.kind == "forgejo" then at.upstream else "127.0.0.1:23231";
      in
      {
        inherit (f) kind user;
        address = if f.address == "" then unwritten else f.address;
        host = "${f.service}${own}.${t.trustDomain}.rete";
        port = at.listenPort;
      }
    ) t.providers.git.forges;
  };

  reasons =
    clean:
    concatMap (s: map (n: "services.${s.name}.git.${n} needs it") (attrNames s.git)) (
      attrValues clean.services
    );

  needs =
    t: host:
    concatMap (
      service:
      map (
        n:
        let
          token = service.git.${n};
          file = value: mode: { inherit value mode; };
        in
        {
          id = "git-${service.name}-${n}";
          for = service.idOn host.name;
          request = {
            forge = token.on;
            account = account service.name n;
            repositories = sorted token.repositories;
            inherit (token) access;
            lifetime = token.lifetime * 3600;
          };
          files = {
            url = file "url" "0444";
            user = file "user" "0444";
            token = file "token" "0400";
            credentials = file "credentials" "0400";
          };
          owner = service.user;
          renew.interval = token.lifetime * 300; # four times in the last third
          inherit (token) restart dependsOn generation;
          place = "services.${service.name}.git.${n}";
          what = "token ${n} of service ${service.name}";
        }
      ) (attrNames service.git)
    ) (map (s: t.services.${s}) host.services);

  label =
    need:
    "git-${substring (stringLength "git-" + stringLength (names.service need.for) + 1) (-1) need.id}";

  check =
    {
      access,
      clean,
      t,
      lib,
      ...
    }:
    let
      inherit (lib)
        fault
        missing
        show
        unknown
        when
        ;
      inherit (clean.providers.git) hosts forges;

      # What an account at a forge is for, of which one is right.
      taken = groupBy (d: d.key) (
        concatMap (
          s:
          map (n: {
            key = "${s.git.${n}.on}/${account s.name n}";
            place = "services.${s.name}.git.${n}";
          }) (attrNames s.git)
        ) (attrValues clean.services)
      );
    in
    {
      top = concatMap (
        n:
        let
          f = forges.${n};
          place = "providers.git.forges.${n}";
          at = t.services.${f.service};
          here =
            !t.services ? ${f.service}
            || any (h: elem h hosts) at.hosts && match "(127\\.|\\[::1]:).*" at.upstream != null;
        in
        lib.service "${place}.service" [ f.service ]
        ++ when (f.address == "" && f.kind == "forgejo" && hosts != [ ] && !here) (
          missing place "address"
            "the service does not listen on a host of providers.git, at a loopback address: name the one where it runs there, or write address = \"127.0.0.1:3000\"; of what leads to it"
        )
      ) (attrNames forges);

      service =
        n: s:
        concatMap (
          d:
          let
            place = "services.${n}.git.${d}";
            inherit (s.git.${d}) on repositories;
            called = account n d;
            others = filter (o: o.place != place) taken."${on}/${called}";
            plain = r: !isInvalid r && match "[^/]*/[^/]*" r == null;
          in
          unknown "FL140" "forge" forges "${place}.on" [ on ]
          ++ when (repositories == [ ]) [
            (fault {
              id = "FL143";
              inherit place;
              problem = "the token is for no repository:";
              value = "[ ]";
              remedy = "write for example repositories = [ \"infra\" ];";
            })
          ]
          ++ when (stringLength called > 40 || match ".*--.*" called != null) [
            (fault {
              id = "FL143";
              inherit place;
              problem = "names of service and token together have at most 31 characters, and single hyphens, these";
              value = show "${n}-${d}";
              remedy = "choose another name for one of them";
            })
          ]
          ++ when ((forges.${on}.kind or "") == "forgejo") (
            map (
              r:
              fault {
                id = "FL143";
                place = "${place}.repositories";
                problem = "repositories of Forgejo and Gitea have an owner, this one has none:";
                value = show r;
                remedy = "write for example \"ops/infra\"";
              }
            ) (filter plain repositories)
          )
          ++ when (others != [ ] && !isInvalid on) [
            (fault {
              id = "FL141";
              inherit place;
              problem = "two tokens would be of one account, for ${(head others).place} has it, too:";
              value = show called;
              remedy = "choose another name for one of them";
            })
          ]
        ) (attrNames s.git);

      # A token is of no use to whom no forwarder lets through.
      warnings.service =
        n: s:
        let
          holders = [ t.services.${n} ] ++ map (h: t.hosts.${h}) t.services.${n}.hosts;
          reaches = of: any (p: any (r: elem r access.leading.${of} or [ ]) p.roles) holders;
        in
        concatMap (
          d:
          let
            of = forges.${s.git.${d}.on}.service or "";
          in
          when (t.services ? ${of} && length t.services.${n}.hosts > 0 && !reaches of) [
            (fault {
              id = "FL142";
              place = "services.${n}.git.${d}";
              problem = "the service would have a token of a forge that it may not reach:";
              value = "service ${of}";
              remedy = "give services.${n}.roles a role that reaches ${of}";
            })
          ]
        ) (attrNames s.git);
    };
}
