# Services at whose public names an ingress requires a sign-in.
let
  inherit (builtins)
    any
    attrValues
    elem
    filter
    lessThan
    mapAttrs
    match
    sort
    ;
  inherit (import ../lib/names.nix) entrance renamed;
  inherit (import ../lib) optionalAttrs;
  inherit (import ./publicnames.nix) serves;

  callback = "/.florete/callback";

  isGated = s: s.sso.mode == "gate" && s.tlsName != "" && s.visibility == "public" && s.shared != null;
  isEntrance = i: i.value.entry.port or entrance == entrance;

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
    mapAttrs (
      name: host:
      filter (
        s: serves host s && any (i: isEntrance i && t.access.reachableOn.${name} ? ${i.name}) s.reachables
      ) gated
    ) t.hosts;

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
  inherit client groups onHosts;

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
