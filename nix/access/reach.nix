# The services that each role reaches: those that it names, directly or by groups, and those of the
# roles in it, without its exceptions. A role that names parts of services or has exceptions is
# followed by instance, and other roles by service, which is faster.
# Topology -> { members, narrow, idle, byRole }
t:
let
  inherit (builtins)
    any
    attrNames
    attrValues
    concatMap
    elem
    filter
    foldl'
    groupBy
    intersectAttrs
    listToAttrs
    mapAttrs
    ;
  inherit (import ../lib) toSet;

  groups = concatMap (g: t.serviceGroups.${g} or [ ]);
  # The names in a role and its groups; some may not exist.
  written = role: role.services ++ groups role.serviceGroups;
  named = mapAttrs (_: written) t.roles;
  published = s: t.services.${s}.published or false;

  # Reports whether a role must be followed by instance.
  special = r: r.except != [ ] || t.parts != { } && any (s: t.parts ? ${s}) (written r);
  isNarrow =
    if t.parts == { } && !any (r: r.except != [ ]) (attrValues t.roles) then
      _: _: false
    else
      _: r: any special ([ r ] ++ map (n: t.roles.${n}) r.roles);
  narrow = mapAttrs isNarrow t.roles;

  whole =
    names:
    listToAttrs (
      concatMap (s: if s.published then s.reachables else [ ]) (
        attrValues (intersectAttrs (toSet names) t.services)
      )
    );

  # The instances of a service with one of some IDs and, unless port is null, that port.
  among =
    ids: part:
    let
      known = toSet ids;
      s = t.services.${part.service};
    in
    filter (
      i: known ? ${i.value.entry.id} && (part.port == null || i.value.entry.port or null == part.port)
    ) s.reachables;
  own = part: among part.ids part;
  partly =
    names:
    listToAttrs (
      concatMap own (
        filter (p: published p.service) (map (n: t.parts.${n}) (filter (n: t.parts ? ${n}) names))
      )
    );

  # A role that leads to all instances of a service also leads to an excepted one through the shared
  # ID, so that is removed too.
  excepted =
    name:
    if t.parts ? ${name} then
      let
        part = t.parts.${name};
        s = t.services.${part.service};
      in
      map (i: i.name) (among (part.ids ++ (if s.scope == "both" then [ s.shared ] else [ ])) part)
    else
      map (i: i.name) (t.services.${name}.reachables or [ ]);

  all = foldl' (a: b: a // b) { };
  # The instances that a role leads to before its exceptions.
  given = mapAttrs (
    name: r:
    let
      self = r.own or (r // { roles = [ ]; });
      # Roles in a circle are a fault of their own, and are not followed.
      inside = filter (n: n != name && !elem name t.roles.${n}.roles) self.roles;
      names = written self;
      # Roles do not inherit reserved services that they may not reach.
      most = whole named.${name} // partly named.${name};
    in
    intersectAttrs most (all ([ (whole names) (partly names) ] ++ map (n: ofServices.${n}) inside))
  ) t.roles;

  ofServices = mapAttrs (
    name: r:
    if narrow.${name} then
      removeAttrs given.${name} (concatMap excepted r.except)
    else
      whole named.${name}
  ) t.roles;

  # role → the instances of other clusters' services that it leads to
  foreign = mapAttrs (_: map (e: e.instance)) (
    groupBy (e: e.role) (
      concatMap (f: concatMap (s: map (role: s // { inherit role; }) s.roles) f.services) t.abroad
    )
  );
in
{
  # Whether a role must be followed by instance.
  # narrow :: { role = Bool; }
  inherit narrow;

  # The services that a role leads to, including names that nobody may reach.
  # members :: { role = [serviceName]; }
  members = mapAttrs (
    role: names:
    if narrow.${role} then
      attrNames (toSet (map (i: i.service) (attrValues ofServices.${role})))
    else
      names
  ) named;

  # The exceptions of a role that remove nothing.
  # idle :: role -> [String]
  idle =
    role: filter (n: !any (id: given.${role} ? ${id}) (excepted n)) t.roles.${role}.except;

  # byRole :: { role = { <service ID> = Instance; }; }
  byRole = mapAttrs (
    role: of: if foreign ? ${role} then of // listToAttrs foreign.${role} else of
  ) ofServices;
}
