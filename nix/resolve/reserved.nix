# The reserved services of the hosts of providers.config: operators act through one, the
# other is a Nix binary cache. Each is there where somebody holds a role with one of the two
# groups that are for it, and is a member of both: access, names, listeners and needs follow
# from that as for any service.
let
  inherit (builtins)
    any
    attrNames
    attrValues
    concatMap
    elem
    filter
    foldl'
    mapAttrs
    ;
  inherit (import ../lib) only;
  constants = (import ../lib/constants.nix).spiffe;
  names = import ../lib/names.nix;

  reserved = {
    ${names.cache} = {
      read = constants.cacheGroup;
      write = constants.cacheGroup + constants.writeSuffix;
      socket = "cache.sock";
      nodes = true;
    };
    # The role `node` does not lead there: what an operator reads is not every host's to know.
    ${names.control} = {
      read = constants.controlGroup;
      write = constants.controlGroup + constants.writeSuffix;
      socket = "control.sock";
      nodes = false;
    };
  };
  groups = service: [
    service.read
    service.write
  ];
  leadsTo = service: role: any (g: elem g (groups service)) role.serviceGroups;

  service =
    name: socket: hosts:
    let
      # Where its process listens on a host, and under which account.
      process =
        instance:
        let
          account = (import ../units/common.nix instance).unit "provider-config";
        in
        {
          user = account;
          upstream = "unix:/run/${account}/${socket}";
        };
    in
    (import ../language/service.nix).named name {
      inherit hosts;
      inherit (process "") upstream;
      identity = "proxy-v2";
      listenPort = 80;
      # Each provider has what was published to it: callers choose one by its name.
      scope = "node";
    }
    // {
      inherit process;
    };

  add =
    clean: name:
    let
      inherit (clean.providers.config) hosts;
      at = reserved.${name};
      leading = filter (r: (at.nodes || r != "node") && leadsTo at clean.roles.${r}) (
        attrNames clean.roles
      );
      holds = holder: any (r: elem r leading) holder.roles;
      # One on no host has no certificate.
      acts = user: any (h: elem user h.users) (attrValues clean.hosts ++ attrValues clean.hostGroups);
      held =
        elem "node" leading
        || any holds (attrValues clean.hosts)
        || any holds (attrValues clean.hostGroups)
        || any holds (attrValues clean.services)
        || any (f: any holds (attrValues f.identities)) (attrValues clean.federated ++ attrValues clean.clusters)
        || any acts (filter (u: holds clean.users.${u}) (attrNames clean.users));
      # It reaches by itself what else is in the groups.
      alone =
        node:
        node
        // {
          services =
            node.services
            ++ concatMap (g: clean.serviceGroups.${g} or [ ]) (
              filter (g: elem g (groups at)) node.serviceGroups
            );
          serviceGroups = filter (g: !elem g (groups at)) node.serviceGroups;
        };
    in
    if hosts == [ ] || leading == [ ] || !held then
      clean
    else
      clean
      // {
        services = clean.services // {
          ${name} = service name at.socket hosts;
        };
        roles =
          if at.nodes then clean.roles else clean.roles // mapAttrs (_: alone) (only [ "node" ] clean.roles);
        serviceGroups =
          clean.serviceGroups
          // mapAttrs (_: members: members ++ [ name ]) (only (groups at) clean.serviceGroups);
      };
in
{
  # Does a role lead to one of them?
  # leads :: Role -> Bool
  leads = role: any (service: leadsTo service role) (attrValues reserved);

  # Does it lead to one, by its name, to do more than read?
  # writes :: String -> Role -> Bool
  writes = name: role: elem reserved.${name}.write role.serviceGroups;

  # The topology, with these services.
  # added :: clean topology -> clean topology
  added = clean: foldl' add clean (attrNames reserved);
}
