# Databases of services, and logins there, at servers that are services of the cluster.
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
    replaceStrings
    stringLength
    substring
    ;
  inherit (import ../types.nix) named of;
  inherit (import ../language/database.nix) database server;
  inherit (import ../lib.nix) isInvalid;
  names = import ../names.nix;

  # How a database of a service is called at its server.
  called = service: n: replaceStrings [ "-" ] [ "_" ] "${service}_${n}";
in
{
  doc = "makes databases, and logins for services, at servers of the cluster";
  port = 7;
  alone = "each would have a login of its own, and end that of the others";
  settings.servers = of "database servers, by name" (
    named { what = "database server"; } server
  );
  service.databases =
    of
      "databases it needs, made by providers.database; delivered as `needs/database-<service>-<database>/current/url`, and in parts: `host`, `port`, `user`, `password`, with `database` of PostgreSQL and `prefix` of Redis"
      (named { what = "database"; } database);

  policy = t: {
    servers = mapAttrs (
      _: s:
      let
        at = t.services.${s.service};
        own = if at.scope == "node" then ".${head at.hosts}" else "";
      in
      {
        inherit (s) kind user;
        address = if s.address == "" then at.upstream else s.address;
        host = "${s.service}${own}.${t.trustDomain}.rete";
        port = at.listenPort;
        keep = s.keep * 86400;
      }
    ) t.providers.database.servers;
  };

  reasons =
    clean:
    concatMap (
      s: map (n: "services.${s.name}.databases.${n} needs it") (attrNames s.databases)
    ) (attrValues clean.services);

  needs =
    t: host:
    concatMap (
      service:
      map (
        n:
        let
          database = service.databases.${n};
          server = t.providers.database.servers.${database.on} or { kind = "postgres"; };
          file = value: mode: { inherit value mode; };
        in
        {
          id = "database-${service.name}-${n}";
          for = service.idOn host.name;
          request = {
            server = database.on;
            name = called service.name n;
            rotate = database.rotate * 86400;
            inherit (database) overlap;
          };
          files = {
            host = file "host" "0444";
            port = file "port" "0444";
            user = file "user" "0444";
            password = file "password" "0400";
            url = file "url" "0400";
          }
          // (
            if server.kind == "redis" then
              { prefix = file "prefix" "0444"; }
            else
              { database = file "database" "0444"; }
          );
          owner = service.user;
          renew.interval = database.overlap / 4;
          inherit (database) restart dependsOn generation;
          place = "services.${service.name}.databases.${n}";
          what = "database ${n} of service ${service.name}";
        }
      ) (attrNames service.databases)
    ) (map (s: t.services.${s}) host.services);

  label =
    need:
    "database-${
      substring (stringLength "database-" + stringLength (names.service need.for) + 1) (-1) need.id
    }";

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
      inherit (clean.providers.database) hosts servers;

      # What a name at a server is for, of which one is right.
      taken = groupBy (d: d.key) (
        concatMap (
          s:
          map (n: {
            key = "${s.databases.${n}.on}/${called s.name n}";
            place = "services.${s.name}.databases.${n}";
          }) (attrNames s.databases)
        ) (attrValues clean.services)
      );
    in
    {
      top = concatMap (
        n:
        let
          s = servers.${n};
          place = "providers.database.servers.${n}";
          at = t.services.${s.service};
          here =
            !t.services ? ${s.service}
            || at.several
            || any (h: elem h hosts) at.hosts && match "(unix:|127\\.|\\[::1]:).*" at.upstream != null;
        in
        lib.service "${place}.service" [ s.service ]
        ++ when (t.services.${s.service}.several or false) [
          (fault {
            id = "FL130";
            place = "${place}.service";
            problem = "its users connect to one port, and several has service";
            value = show s.service;
            remedy = "give services.${s.service} one port, and make what its other ports lead to a service of its own";
          })
        ]
        ++ when (s.address == "" && hosts != [ ] && !here) (
          missing place "address"
            "the service does not listen on a host of providers.database, at a loopback address or a socket: name the one where it runs there, or write address = \"127.0.0.1:5432\"; of what leads to it"
        )
      ) (attrNames servers);

      service =
        n: s:
        concatMap (
          d:
          let
            place = "services.${n}.databases.${d}";
            inherit (s.databases.${d}) on;
            long = stringLength n + stringLength d;
            others = filter (o: o.place != place) taken."${on}/${called n d}";
          in
          unknown "FL099" "database server" servers "${place}.on" [ on ]
          ++ when (long > 53) [
            (fault {
              id = "FL025";
              inherit place;
              problem = "names of service and database together have at most 53 characters, these";
              value = toString long;
              remedy = "shorten one of them";
            })
          ]
          ++ when (match "pg[_-].*" "${n}-${d}" != null && (servers.${on}.kind or "") == "postgres") [
            (fault {
              id = "FL005";
              inherit place;
              problem = "names of PostgreSQL's own begin with pg_, as this would:";
              value = show (called n d);
              remedy = "choose another name for the service";
            })
          ]
          ++ when (others != [ ] && !isInvalid on) [
            (fault {
              id = "FL100";
              inherit place;
              problem = "two databases would be one, for ${(head others).place} is called so, too:";
              value = show (called n d);
              remedy = "choose another name for one of them";
            })
          ]
        ) (attrNames s.databases);

      # A login is of no use to whom no forwarder lets through.
      warnings.service =
        n: s:
        let
          holders = [ t.services.${n} ] ++ map (h: t.hosts.${h}) t.services.${n}.hosts;
          reaches = of: any (p: any (r: elem r access.leading.${of} or [ ]) p.roles) holders;
        in
        concatMap (
          d:
          let
            of = servers.${s.databases.${d}.on}.service or "";
          in
          when (t.services ? ${of} && length t.services.${n}.hosts > 0 && !reaches of) [
            (fault {
              id = "FL101";
              place = "services.${n}.databases.${d}";
              problem = "the service would have a login at a server that it may not reach:";
              value = "service ${of}";
              remedy = "give services.${n}.roles a role that reaches ${of}";
            })
          ]
        ) (attrNames s.databases);
    };
}
