# Resolves teams within teams, and roles within roles. A user has the roles of their teams,
# permanently or until an end date. A role reaches everything that the roles within it reach. If
# teams or roles contain each other in a circle, the circle is followed once, and check/ reports the
# error.
# clean topology -> clean topology
clean:
let
  inherit (builtins)
    any
    attrNames
    attrValues
    concatLists
    concatMap
    elem
    filter
    listToAttrs
    mapAttrs
    zipAttrsWith
    ;
  inherit (import ../lib)
    closure
    genAttrs
    invert
    known
    latest
    sorted
    ;

  teams = attrValues clean.teams;
  of = invert (team: team.users) teams;
  # Teams with members whose membership ends.
  guests = filter (team: team.usersUntil != { }) teams;
  guestOf =
    name:
    map (team: {
      inherit (team) name;
      end = team.usersUntil.${name};
    }) (filter (team: team.usersUntil ? ${name} && team.usersUntil.${name} > now && !elem name team.users) guests);
  # The roles of a team for a member whose membership ends: until then, or until the role ends.
  upTo =
    end: team:
    mapAttrs (_: own: if own < end then own else end) clean.teams.${team}.until
    // genAttrs clean.teams.${team}.roles (_: end);
  above = invert (team: team.teams) teams;

  within =
    name: role:
    filter (r: r != name) (closure (r: known clean.roles clean.roles.${r}.roles) (known clean.roles role.roles));
  nested = any (r: r.roles != [ ]) (attrValues clean.roles);

  # A role with an end is a role until the first evaluation after it. Of several ends the latest
  # applies, and none if one source gives the role without an end.
  now = (import ../lib).time clean;
  live =
    holder:
    if holder.until == { } then
      holder
    else
      let
        until = removeAttrs (listToAttrs (
          filter (e: e.value > now) (
            attrValues (mapAttrs (name: value: { inherit name value; }) holder.until)
          )
        )) holder.roles;
      in
      holder
      // {
        inherit until;
        roles = sorted (holder.roles ++ attrNames until);
      };
  timed =
    followed:
    followed
    // {
      hosts = ending followed.hosts;
      hostGroups = ending followed.hostGroups;
      users = ending followed.users;
      services = ending followed.services;
    };
  # Most clusters have no ends.
  ending =
    holders:
    if any (h: h.until != { }) (attrValues holders) then mapAttrs (_: live) holders else holders;

  # A foreign service names the roles that lead to it; roles that contain these lead to it too.
  ledTo =
    service:
    service
    // {
      roles = sorted (
        service.roles
        ++ filter (name: any (r: elem r service.roles) (within name clean.roles.${name})) (
          attrNames clean.roles
        )
      );
    };
  led =
    all:
    if nested then mapAttrs (_: f: f // { services = mapAttrs (_: ledTo) f.services; }) all else all;
in
timed (
clean
// {
  clusters = led clean.clusters;
  federated = led clean.federated;
  users =
    if teams == [ ] then
      clean.users
    else
      mapAttrs (
        name: user:
        let
          outwards = closure (team: above.${team} or [ ]);
          all = outwards (of.${name} or [ ]);
          guest = if guests == [ ] then [ ] else guestOf name;
        in
        if !of ? ${name} && guest == [ ] then
          user
        else
          user
          // {
            # From the team that names the user outwards.
            teams = all ++ filter (team: !elem team all) (outwards (map (g: g.name) guest));
            roles = sorted (user.roles ++ concatMap (team: clean.teams.${team}.roles) all);
            until = latest (
              [ user.until ]
              ++ map (team: clean.teams.${team}.until) all
              ++ concatMap (g: map (upTo g.end) (outwards [ g.name ])) guest
            );
          }
      ) clean.users;
  roles =
    if !nested then
      clean.roles
    else
      mapAttrs (
        name: role:
        if role.roles == [ ] then
          role
        else
          let
            all = within name role;
            every = attribute: sorted (role.${attribute} ++ concatMap (r: clean.roles.${r}.${attribute}) all);
          in
          role
          // {
            own = {
              inherit (role) services serviceGroups;
              roles = known clean.roles role.roles;
            };
            roles = all;
            services = every "services";
            serviceGroups = every "serviceGroups";
            requires = every "requires";
            logins = zipAttrsWith (_: lists: sorted (concatLists lists)) (
              [ role.logins ] ++ map (r: clean.roles.${r}.logins) all
            );
          }
      ) clean.roles;
})
