# Resolves callers outside the cluster. These are machines without an agent, which are identified
# by a client certificate or only by their addresses. They connect through the host in `via`. A separate role allows the node
# of that host to reach the same services as these callers.
let
  inherit (builtins) attrValues filter listToAttrs mapAttrs;
  inherit ((import ../lib/constants.nix).spiffe) reservedPrefix;
  names = import ../lib/names.nix;
  role = name: "${reservedPrefix}outside-${name}";
in
{
  # The identity that callers of this name prove, if they have a certificate.
  # id :: Topology -> String -> String
  id = t: name: names.id t.trustDomain "outside/${name}";

  # The role by which a node connects callers of this name.
  # role :: String -> String
  inherit role;

  # The topology with these roles.
  # added :: clean topology -> clean topology
  added =
    clean:
    let
      callers = attrValues clean.outside;
      roles = listToAttrs (
        map (o: {
          name = role o.name;
          value = {
            name = role o.name;
            services = o.reaches;
            serviceGroups = [ ];
            roles = [ ];
            except = [ ];
            logins = { };
            request = {
              by = [ ];
              approve = [ ];
            };
            requires = [ ];
          };
        }) callers
      );
      holding = name: map (o: role o.name) (filter (o: o.via == name) callers);
    in
    if callers == [ ] then
      clean
    else
      clean
      // {
        roles = clean.roles // roles;
        hosts = mapAttrs (name: h: h // { roles = h.roles ++ holding name; }) clean.hosts;
      };
}
