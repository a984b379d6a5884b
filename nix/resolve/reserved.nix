# Defines the two reserved services on the hosts of providers.config. Operators work through one of
# them, and the other is a Nix binary cache. Each service is a member of two service groups, and
# exists if anyone has a role with one of these groups. Its access, names, listeners and needs are
# computed in the same way as those of any other service.
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
    # The role `node` does not lead to it, because hosts must not read what operators read.
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
      # The socket of the process on a host, and its account.
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
      # Providers may have different versions, so callers choose one by its name.
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
      # A user on no host has no certificate.
      acts = user: any (h: elem user h.users) (attrValues clean.hosts ++ attrValues clean.hostGroups);
      held =
        elem "node" leading
        || any holds (attrValues clean.hosts)
        || any holds (attrValues clean.hostGroups)
        || any holds (attrValues clean.services)
        || any (f: any holds (attrValues f.identities)) (attrValues clean.federated ++ attrValues clean.clusters)
        || any acts (filter (u: holds clean.users.${u}) (attrNames clean.users));
      # The role `node` keeps the other services of these groups.
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
  # Reports whether a role leads to a reserved service.
  # leads :: Role -> Bool
  leads = role: any (service: leadsTo service role) (attrValues reserved);

  # Reports whether a role leads to a reserved service with the right to write.
  # writes :: String -> Role -> Bool
  writes = name: role: elem reserved.${name}.write role.serviceGroups;

  # The topology with these services.
  # added :: clean topology -> clean topology
  added = clean: foldl' add clean (attrNames reserved);
}
