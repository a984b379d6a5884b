# Roles and groups of services as data.
# Topology -> { roles, serviceGroups }
t:
let
  inherit (builtins)
    attrValues
    filter
    groupBy
    mapAttrs
    ;
  inherit (import ../../lib) known optionalAttrs sorted;
  reach = import ../../access/reach.nix t;
  logins = (import ../../access/logins.nix t { }).granted;
  # The names that exist.
  named = filter (n: t.services ? ${n} || t.parts ? ${n});
  # The ports that a role leads to of services with several ports, by ID of the service. Without an
  # entry, the role leads to all.
  reachPorts =
    role:
    mapAttrs (_: same: sorted (map (i: i.entry.port) same)) (
      groupBy (i: i.entry.id) (filter (i: i.entry ? port) (attrValues reach.byRole.${role}))
    );
in
{
  roles = mapAttrs (name: r: {
    inherit (r) requires roles;
    serviceGroups = known t.serviceGroups r.serviceGroups;
    services = named r.services;
    except = named r.except;
    # Only if the role does not lead to all instances of the services that it names.
    reach =
      if reach.narrow.${name} then
        sorted (map (i: i.entry.id) (attrValues reach.byRole.${name}))
      else
        null;
    # The services that it names itself, if it contains other roles.
    own =
      if r ? own then
        {
          serviceGroups = known t.serviceGroups r.own.serviceGroups;
          services = named r.own.services;
        }
      else
        null;
  }
  // optionalAttrs (reach.narrow.${name} && reachPorts name != { }) { ports = reachPorts name; }
  // optionalAttrs (logins ? ${name}) { logins = logins.${name}; }
  // optionalAttrs (t.requests ? ${name}) {
    request = {
      inherit (r.request) approve by most;
      users = t.requests.${name}.by;
      approvers = t.requests.${name}.approve;
    };
  }
  ) t.roles;

  serviceGroups = mapAttrs (_: named) t.serviceGroups;
}
