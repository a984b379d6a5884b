# Faults of users, hosts and services that do not, or do, reach a service. `expected` is
# expectednames.nix.
# { access, clean, expected, lib, t, untrue, … } -> { reached, unreached }
{
  access,
  clean,
  expected,
  lib,
  t,
  untrue,
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
    filter
    head
    length
    toJSON
    ;
  inherit (import ../lib) distinct;
  inherit (lib)
    attribute
    faultIf
    show
    when
    ;
  inherit (expected)
    barred
    keys
    reserved
    sections
    serviceOf
    ;
  constants = (import ../lib/constants.nix).spiffe;

  leads = key: role: access.byRole.${role} ? ${key};
  list = concatStringsSep ", ";

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
in
{
  # reached, unreached :: place -> principal -> service -> [Fault]
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
          if !(t.services.${serviceOf n}.published or true) then
            "set services.${serviceOf n}.visibility = \"cluster\";, which visibility = \"host\" hides"
          else if reserved ? ${n} then
            "add a role with serviceGroups = [ ${toJSON reserved.${n}} ]; to ${own}.roles"
          else if given == [ ] then
            "name it in the services of a role, and that in ${own}.roles"
          else
            "add ${
              if length given == 1 then toJSON (head given) else "one of ${list (map toJSON given)}"
            } to ${own}.roles, or take it out of the expectation"
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
    faultIf (leading != [ ]) {
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
    };
}
