# Services at whose public names an ingress requires a sign-in. Inside the cluster, the forwarders
# that publish these services admit users, and the requests of these ingresses.
let
  inherit (builtins)
    any
    attrNames
    attrValues
    catAttrs
    concatMap
    elem
    filter
    lessThan
    mapAttrs
    match
    sort
    ;
  inherit (import ../lib/names.nix) entrance renamed;
  inherit (import ../lib) optionalAttrs toSet;
  inherit (import ./publicnames.nix) enters;

  callback = "/.florete/callback";

  isGated = s: s.sso.mode == "gate" && s.tlsName != "" && s.visibility == "public" && s.shared != null;

  # The names of the ports to which the public names lead.
  ports = s: [ entrance ] ++ filter (p: p != "") (catAttrs "port" (attrValues s.ingress.paths));

  # Reports whether callers of a port pass the gate of its service.
  guards =
    s: port: s.sso.mode == "gate" && !(port.carried ? protocol) && (!s.several || elem port.name (ports s));

  # The instances of a service whose callers pass its gate.
  # guarded :: Service -> [Instance]
  guarded =
    s:
    let
      ports = filter (guards s) s.ports;
    in
    filter (
      i: any (port: port.name == i.value.entry.port or "") ports && !(i.value.entry ? protocol)
    ) s.reachables;

  # The hosts whose ingress serves the gate of a service.
  serving =
    t:
    let
      gates = onHosts t;
    in
    name: filter (host: any (s: s.name == name) gates.${host}) (attrNames gates);

  # The identities under which these ingresses call the service. A proxy runs as the node of its
  # host, or as a service of this host.
  ingresses =
    t: s:
    attrNames (
      toSet (
        concatMap (
          host:
          map (i: i.id) (
            filter (
              i: match "user/.*" i.key == null && any (x: i.reach ? ${x.name}) s.reachables
            ) t.access.identities.${host}
          )
        ) (serving t s.name)
      )
    );

  # Names of services begin with a letter or digit, so "oidc--" is not the need of a service.
  need = s: "oidc--${s.name}";

  redirectURIs = s: sort lessThan (map (name: "https://${name}${callback}") ([ s.tlsName ] ++ s.tlsAliases));

  # host → the services whose gate it serves
  # onHosts :: Topology -> { hostName = [Service]; }
  onHosts =
    t:
    let
      gated = filter isGated (attrValues t.services);
    in
    mapAttrs (_: host: filter (s: enters t host s) gated) t.hosts;

  # The attribute of a request for a client that the issuer knows by another name of the service.
  # client :: Service -> String -> AttrSet
  client = s: id: optionalAttrs (s.sso.called != "") { client = renamed id s.sso.called; };

  groups = s: mapAttrs (_: sort lessThan) s.sso.groups;

  # A file of the client, which only the ingress reads.
  private = value: {
    inherit value;
    mode = "0400";
  };
in
{
  # `groups` has the groups of a service under the names that it knows, as sorted lists.
  inherit
    client
    groups
    guarded
    guards
    ingresses
    onHosts
    ports
    serving
    ;

  # Reports whether the ID of a need is that of a gate.
  isNeed = id: match "oidc--.*" id != null;

  # The needs of a host for the clients of its gates.
  # needs :: Topology -> Host -> [Need]
  needs =
    t:
    let
      gates = onHosts t;
    in
    host:
    map (s: {
      id = need s;
      for = host.id;
      what = "sign-in of ${s.name} at the ingress";
      request = {
        inherit (t.providers.oidc) issuer;
        service = s.shared;
        redirectURIs = redirectURIs s;
      }
      // client s s.shared
      // optionalAttrs (s.sso.allowedGroups != [ ]) {
        allowedGroups = sort lessThan s.sso.allowedGroups;
      };
      files = {
        client-id = private "clientId";
        client-secret = private "clientSecret";
        issuer = private "issuer";
      };
      # Hosts that share a client must notice when another host had it replaced.
      renew = { };
      inherit (s.sso) dependsOn generation;
      place = "services.${s.name}.sso";
    }) gates.${host.name};

  # The attribute of an entry for a port with a gate in the manifest of a host that publishes the
  # service.
  # published :: Topology -> Service -> AttrSet
  published = t: s: { gate.ingresses = ingresses t s; };

  # The attribute of an entry in the manifest of an ingress.
  # attribute :: Topology -> Service -> AttrSet
  attribute =
    t: s:
    optionalAttrs (isGated s) {
      gate = {
        need = need s;
        session = (if s.sso.session == null then 12 else s.sso.session) * 3600;
      }
      // optionalAttrs (s.sso.groups != { }) { groups = groups s; }
      // optionalAttrs (t.providers.oidc.registration == "") { own = true; };
    };
}
