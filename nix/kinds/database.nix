# Databases of services, and logins there, at servers that are services of the cluster.
let
  inherit (builtins)
    mapAttrs
    match
    replaceStrings
    stringLength
    ;
  inherit (import ../language/types) named of;
  inherit (import ../language/database.nix) database server;
  accounts = import ./account.nix {
    kind = "database";
    needed = "databases";
    what = "database";
    servers = "servers";
    inherit called;
  };

  # The name of a service's database at its server.
  called =
    service: n: database:
    if database.called != "" then
      database.called
    else
      replaceStrings [ "-" ] [ "_" ] "${service}_${n}";
in
{
  doc = "Makes databases, and logins for services, at database servers of the cluster.";
  port = 7;
  alone = "each would have a login of its own, and end that of the others";
  settings.servers = of "Database servers, by name." (
    named { what = "database server"; } server
  );
  service.databases =
    of
      "Databases that `providers.database` makes for the service, delivered as `needs/database-<service>-<database>/current/url`, and in parts: `host`, `port`, `user`, `password`, for PostgreSQL `database` and for Redis `prefix`."
      (named { what = "database"; } database);

  policy = t: {
    servers = mapAttrs (
      n: s: s // { keep = t.providers.database.servers.${n}.keep * 86400; }
    ) (accounts.policy (_: at: at.upstream) t);
  };

  inherit (accounts) reasons label;

  needs = accounts.needs (
    t: database: name:
    let
      kind = t.providers.database.servers.${database.on}.kind or "";
    in
    {
      request = {
        server = database.on;
        rotate = database.rotate * 86400;
        inherit name;
        inherit (database) overlap;
      };
      public = [
        "host"
        "port"
        "user"
        (if kind == "redis" then "prefix" else "database")
      ];
      secret = [
        "password"
        "url"
      ];
      renew.interval = database.overlap / 4;
    }
  );

  check = accounts.check {
    server = "database server";
    reached = _: at: if at.several then null else "(unix:|127\\.|\\[::1]:).*";
    at = {
      place = "a loopback address or a socket";
      example = "127.0.0.1:5432";
    };
    unknown = "FL099";
    taken = {
      id = "FL100";
      problem = other: "two databases would be one, for ${other} is called so, too:";
    };
    unreached = {
      id = "FL101";
      problem = "the service would have a login at a server that it may not reach:";
    };
    wrong =
      {
        clean,
        t,
        lib,
        ...
      }:
      let
        inherit (lib) faultIf show;
      in
      {
        server =
          place: s:
          faultIf (t.services.${s.service}.several or false) {
            id = "FL130";
            place = "${place}.service";
            problem = "its users connect to one port, and several has service";
            value = show s.service;
            remedy = "give services.${s.service} one port, and make what its other ports lead to a service of its own";
          };
        needed =
          s: d:
          let
            place = "services.${s.name}.databases.${d}";
            d' = s.databases.${d};
            long = stringLength s.name + stringLength d;
            kind = clean.providers.database.servers.${d'.on}.kind or "";
          in
          faultIf (long > 53 && d'.called == "") {
            id = "FL025";
            inherit place;
            problem = "names of service and database together have at most 53 characters, these";
            value = toString long;
            remedy = "shorten one of them";
          }
          ++ faultIf (match "pg_.*" (called s.name d d') != null && kind == "postgres") {
            id = "FL005";
            inherit place;
            problem = "names of PostgreSQL's own begin with pg_, as this would:";
            value = show (called s.name d d');
            remedy = "choose another name for the service, or write ${place}.called = \"…\";";
          };
      };
  };
}
