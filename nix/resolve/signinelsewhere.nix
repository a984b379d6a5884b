# Sign-in across clusters of one trust domain: services here that sign people in at the issuer of
# another cluster, and clients of other clusters at the issuer of this one.
let
  inherit (builtins)
    attrNames
    attrValues
    concatMap
    filter
    head
    lessThan
    mapAttrs
    match
    sort
    ;
  inherit (import ../language/formats) isIdentity;
  inherit (import ../lib) optionalAttrs;
  names = import ../lib/names.nix;

  # The other cluster at whose issuer a service signs people in, or null.
  at =
    t: service:
    if service.sso.cluster == "" then null else t.clusters.${service.sso.cluster}.oidc or null;

  last =
    path:
    let
      part = match "[^/]*/(.*)" path;
    in
    if part == null then path else head part;

  # The attributes of a request for a client, as the issuer knows it.
  requested =
    client:
    let
      sorted =
        name: optionalAttrs (client.${name} != [ ]) { ${name} = sort lessThan client.${name}; };
    in
    {
      redirectURIs = sort lessThan client.redirectURIs;
    }
    // optionalAttrs client.public { public = true; }
    // optionalAttrs (client.scopes != [ ]) {
      scopes = [ "openid" ] ++ sort lessThan client.scopes;
    }
    // sorted "allowedGroups"
    // optionalAttrs (client.claims != { }) { inherit (client) claims; }
    // optionalAttrs (client.groups != { }) { groups = mapAttrs (_: sort lessThan) client.groups; }
    // sorted "postLogoutRedirectURIs";

  # Needs are named after the service, without its host.
  need = path: "oidc-${last path}";

  # A need for a client, or its grant.
  asked = issuer: node: service: client: need: {
    caller = node;
    inherit need;
    inherit (client) generation;
    request = {
      inherit issuer service;
    }
    // requested client;
  };
in
{
  # The issuer at which people sign in to a service.
  # issuer :: Topology -> Service -> { issuer, … }
  issuer =
    t: service:
    let
      other = at t service;
    in
    if other == null then t.providers.oidc else other;

  # The hosts that answer requests for the client of a service.
  # hosts :: Topology -> Service -> [hostName]
  hosts =
    t: service:
    let
      other = at t service;
    in
    if other == null then t.providers.oidc.hosts else attrNames other.hosts;

  inherit requested;

  # cluster → its clients at the issuer here, one for each node that may fetch it
  # clients :: Topology -> { cluster = [{ path, sshHostKey, grant }]; }
  clients =
    t:
    mapAttrs (
      _: c:
      concatMap (
        path:
        map (node: {
          inherit path;
          sshHostKey = c.clients.${path}.nodes.${node};
          grant = asked t.providers.oidc.issuer (names.id t.trustDomain "node/${node}") (
            names.id t.trustDomain "service/${path}"
          ) c.clients.${path} (need path);
        }) (attrNames c.clients.${path}.nodes)
      ) (filter (path: isIdentity "service/${path}") (attrNames c.clients))
    ) t.clusters;

  # cluster → the needs of hosts here for clients at its issuer
  # needs :: Topology -> { cluster = [Need]; }
  needs =
    t:
    mapAttrs (
      n: c:
      concatMap (
        s:
        map (
          host:
          asked c.oidc.issuer t.hosts.${host}.id (s.idOn host) s.sso "oidc-${s.name}"
          // {
            inherit (t.hosts.${host}) sshHostKey;
          }
        ) s.hosts
      ) (filter (s: s.sso.mode == "oidc" && s.sso.cluster == n) (attrValues t.services))
    ) t.clusters;

  # The ID of the need for the client of a service, by its path.
  # need :: path -> String
  inherit need;
}
