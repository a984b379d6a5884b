# Faults of access that the topology expects, and of access that it expects not to be there.
{
  access,
  clean,
  t,
  lib,
  ...
}:
let
  inherit (builtins)
    all
    any
    attrNames
    concatMap
    concatStringsSep
    elem
    elemAt
    filter
    genList
    head
    length
    match
    toJSON
    ;
  inherit (import ../lib) distinct isInvalid toSet;
  gate = import ../resolve/gate.nix;
  inherit (lib)
    attribute
    fault
    missing
    show
    suggest
    unknown
    when
    ;
  inherit (clean) expect;
  constants = (import ../lib/constants.nix).spiffe;
  names = import ../lib/names.nix;

  # Parts of services that no role names are parts too.
  parts = (import ../resolve/part.nix).parts {
    clean = clean // {
      roles.expected = {
        services = concatMap (e: e.reaches ++ e.not) expect;
        except = [ ];
        logins = { };
      };
      serviceGroups = { };
    };
    inherit (t) hosts outward services;
  };
  named =
    (import ./named.nix {
      t = t // {
        inherit parts;
      };
      inherit unknown;
    }).parts;

  # The group of services through which roles lead to a reserved service.
  reserved = {
    ${names.cache} = constants.cacheGroup;
    ${names.control} = constants.controlGroup;
  };
  unreserved = filter (n: !reserved ? ${n});

  # The keys of the instances that the name of a service stands for, none if it is unknown.
  keys =
    n:
    let
      part = parts.${n};
      ids = toSet part.ids;
      other = t.elsewhere.${n};
      domain = t.federated.${other.cluster}.trustDomain or t.trustDomain;
    in
    if t.services ? ${n} then
      map (i: i.name) t.services.${n}.reachables
    else if t.elsewhere ? ${n} then
      [ (names.id domain "service/${other.service}") ]
    else if parts ? ${n} then
      map (i: i.name) (
        filter (
          i: ids ? ${i.value.entry.id} && (part.port == null || i.value.entry.port or null == part.port)
        ) t.services.${part.service}.reachables
      )
    else
      [ ];

  sections = {
    node = "hosts";
    service = "services";
    user = "users";
  };
  # The service that a name stands for, or that it is a part of.
  serviceOf = n: parts.${n}.service or n;

  # The instances of a service at which its gate refuses a principal, by key. Inside the cluster, a
  # gate admits users and its ingresses.
  barred =
    p: n:
    let
      s = t.services.${serviceOf n} or null;
      guarded = filter (gate.guards s) s.ports;
      ids =
        if p.type == "node" then
          [ t.hosts.${p.name}.id ]
        else
          concatMap t.services.${p.name}.idsOn t.services.${p.name}.hosts;
      ingresses = gate.ingresses (t // { inherit access; }) s;
    in
    if s == null || p.type == "user" || guarded == [ ] || any (id: elem id ingresses) ids then
      { }
    else
      toSet (
        map (i: i.name) (
          filter (
            i: any (port: port.name == i.value.entry.port or "") guarded && !(i.value.entry ? protocol)
          ) s.reachables
        )
      );

  # { type, name } of each principal that `who` may mean.
  meant =
    who:
    let
      written = match "(node|service|user)/(.*)" who;
      group = match "group/(.+)" who;
      as =
        type: name:
        when (clean.${sections.${type}} ? ${name}) [ { inherit type name; } ];
    in
    if group != null then
      [
        {
          type = "group";
          name = head group;
        }
      ]
    else if written != null then
      as (head written) (elemAt written 1)
    else
      concatMap (type: as type who) (attrNames sections);

  each =
    i:
    let
      e = elemAt expect i;
      place = "expect[${toString i}]";
      found = meant e.who;
      full = p: toJSON "${p.type}/${p.name}";
    in
    if isInvalid e.who || e.who == "" then
      [ ]
    else if found == [ ] then
      [
        (fault {
          id = "FL158";
          place = "${place}.who";
          problem = "no user, host or service has the name";
          value = show e.who;
          remedy = suggest "user, host or service" e.who (
            if match "(node|service|user)/.*" e.who == null then
              concatMap (type: attrNames clean.${sections.${type}}) (attrNames sections)
            else
              let
                type = head (match "([a-z]+)/.*" e.who);
              in
              map (n: "${type}/${n}") (attrNames clean.${sections.${type}})
          );
        })
      ]
    else if length found > 1 then
      [
        (fault {
          id = "FL158";
          place = "${place}.who";
          problem = "the name belongs to a ${concatStringsSep " and to a " (map (p: p.type) found)}:";
          value = show e.who;
          remedy = "write ${concatStringsSep " or " (map full found)}";
        })
      ]
    else
      named "${place}.reaches" (unreserved e.reaches)
      ++ named "${place}.not" (unreserved e.not)
      ++ when (e.reaches == [ ] && e.not == [ ]) (
        missing place "reaches" "write reaches = [ \"…\" ]; or not = [ \"…\" ]; with services"
      )
      ++ (
        if (head found).type == "group" then
          concatMap (admitted "${place}.reaches" (head found).name) (distinct e.reaches)
          ++ concatMap (refused "${place}.not" (head found).name) (distinct e.not)
        else
          concatMap (reached "${place}.reaches" (head found)) (distinct e.reaches)
          ++ concatMap (unreached "${place}.not" (head found)) (distinct e.not)
      );

  untrue = place: n: problem: remedy: [
    (fault {
      id = "FL157";
      inherit place problem remedy;
      value = show n;
    })
  ];

  # The sign-in of a service, null for one to which nobody signs in.
  signIn =
    n:
    let
      s = clean.services.${serviceOf n} or null;
    in
    if s == null || s.sso.mode == "none" then null else s.sso;
  allows = group: sso: sso.allowedGroups == [ ] || elem group sso.allowedGroups;
  groupsOf = n: "services.${attribute (serviceOf n)}.sso.allowedGroups";

  # Faults of people of a group who do not, or do, sign in to a service.
  admitted =
    place: group: n:
    let
      sso = signIn n;
    in
    if sso == null then
      # An unknown name has been reported.
      when (clean.services ? ${serviceOf n} || reserved ? ${n} || t.elsewhere ? ${n}) (
        untrue place n "a group reaches services by their sign-ins, and none leads to" "name a service with sso.mode = \"gate\"; or \"oidc\";, or test users instead of a group"
      )
    else
      when (!allows group sso) (
        untrue place n "people in group ${group} may not sign in to" "add ${toJSON group} to ${groupsOf n}, or take it out of the expectation"
      );
  refused =
    place: group: n:
    let
      sso = signIn n;
    in
    when (sso != null && allows group sso) (
      untrue place n "people in group ${group} may sign in to" (
        if sso.allowedGroups == [ ] then
          "write ${groupsOf n} = [ \"…\" ]; because without it everybody may"
        else
          "take ${toJSON group} out of ${groupsOf n}"
      )
    );

  leads = key: role: access.byRole.${role} ? ${key};
  list = concatStringsSep ", ";

  reached =
    place: p: n:
    let
      who = t.${sections.${p.type}}.${p.name};
      of = keys n;
      # Access of a user ends where no host lets the user act.
      nowhere = p.type == "user" && who.hosts == [ ];
      lacking = filter (key: !any (leads key) who.roles) of;
      some = length lacking < length of;
      leading = filter (role: all (key: leads key role) lacking) (attrNames t.roles);
      # An unknown role of it has been reported, and may be the one that leads there.
      unsure = !all (role: t.roles ? ${role}) (
        clean.${sections.${p.type}}.${p.name}.roles
        ++ (
          if p.type == "node" then
            concatMap (g: clean.hostGroups.${g}.roles or [ ]) (t.outward who.group)
          else
            [ ]
        )
      );
      given = filter (
        role:
        !elem role [
          "node"
          "operator"
        ]
      ) leading;
      own = "${sections.${p.type}}.${attribute p.name}";
      closed = filter (key: (barred p n) ? ${key}) of;
      untrueHere = untrue place n;
    in
    if unsure || (if of == [ ] then !reserved ? ${n} else lacking == [ ] && !nowhere && closed == [ ]) then
      [ ]
    else if of == [ ] then
      untrueHere "nobody reaches" "declare providers.config, and give a role of ${p.name} serviceGroups = [ ${toJSON reserved.${n}} ];"
    else if lacking == [ ] && nowhere then
      untrueHere "${p.name} acts on no host, and does not reach" "name ${toJSON p.name} in the users of a host"
    else if lacking == [ ] then
      untrueHere "inside the cluster, only users pass the gate, and ${p.name} does not reach" "name a port without a gate, or take it out of the expectation"
    else
      untrueHere
        (
          if some then "${p.name} reaches only a part of" else "no role of ${p.name} leads to"
        )
        (
          if !(t.services.${(parts.${n} or { service = n; }).service}.published or true) then
            "set services.${(parts.${n} or { service = n; }).service}.visibility = \"cluster\";, which visibility = \"host\" hides"
          else if reserved ? ${n} then
            "add a role with serviceGroups = [ ${toJSON reserved.${n}} ]; to ${own}.roles"
          else if given == [ ] then
            "name it in the services of a role, and that in ${own}.roles"
          else
            "add ${
              if length given == 1 then toJSON (head given) else "one of ${list (map toJSON given)}"
            } to ${own}.roles, or take it out of the expectation"
        );

  # Places that give a role to a principal.
  givers =
    p: role:
    let
      has = of: elem role (of.roles or [ ]) || (of.until or { }) ? ${role};
      own = "${sections.${p.type}}.${attribute p.name}";
      teams = map (n: "teams.${attribute n}") (
        filter (n: has t.teams.${n}) (t.users.${p.name}.teams or [ ])
      );
      groups = map (g: "hostGroups.${attribute g}") (
        filter (g: has (clean.hostGroups.${g} or { })) (t.outward t.hosts.${p.name}.group)
      );
    in
    when (has clean.${sections.${p.type}}.${p.name}) [ own ]
    ++ (
      if p.type == "user" then
        teams
      else if p.type == "node" then
        groups
      else
        [ ]
    );

  unreached =
    place: p: n:
    let
      who = t.${sections.${p.type}}.${p.name};
      closed = barred p n;
      of = filter (key: !closed ? ${key}) (keys n);
      leading = filter (role: any (key: leads key role) of) who.roles;
      from = distinct (concatMap (givers p) leading);
    in
    when (leading != [ ]) [
      (fault {
        id = "FL157";
        inherit place;
        problem = "the ${if length leading == 1 then "role" else "roles"} ${list leading} of ${p.name} ${
          if length leading == 1 then "leads" else "lead"
        } to";
        value = show n;
        remedy = "${
          if from == [ ] then
            ""
          else
            "take ${list (map toJSON leading)} out of ${list (map (f: "${f}.roles") from)}, "
        }${if from == [ ] then "" else "or "}${
          if reserved ? ${n} then
            "take ${toJSON reserved.${n}} and ${
              toJSON (reserved.${n} + constants.writeSuffix)
            } out of ${list (map (r: "roles.${attribute r}.serviceGroups") leading)}"
          else if t.elsewhere ? ${n} then
            "take ${show n} out of ${list (map (r: "roles.${attribute r}.services") leading)}"
          else
            "write ${list (map (r: "roles.${attribute r}.except = [ ${show n} ];") leading)}"
        }";
      })
    ];
in
if expect == [ ] then [ ] else concatMap each (genList (i: i) (length expect))
