# What a host must fetch, from whom, and where it goes. Derived from what runs on
# it; nobody configures needs.
{ topology, access }:
let
  inherit (builtins)
    attrNames
    elem
    filter
    foldl'
    lessThan
    listToAttrs
    map
    mapAttrs
    sort
    ;
  t = topology;

  nowhere = { files = { }; owner = ""; group = ""; };

  need = kind: request: more: {
    inherit kind request;
    providers = t.providers.${kind}.hosts;
    deliver = nowhere;
    onChange = [ ];
    dependsOn = [ "cert-node" ];
    renew = { };
    generation = 1;
  } // more;

  # Read by the forwarder: activation knows its account.
  certificate = id: need "cert" { inherit id; } {
    deliver = nowhere // {
      files = {
        "svid.pem" = { value = "svid"; mode = "0444"; };
        "key.pem" = { value = "key"; mode = "0400"; };
        "bundle.pem" = { value = "bundle"; mode = "0444"; };
      };
    };
    renew.atPercent = 66;
  };

  client = host: service: need "oidc"
    {
      inherit (t.providers.oidc) issuer;
      service = service.idOn host.name;
      redirectURIs = sort lessThan service.sso.redirectURIs;
    }
    {
      deliver = {
        files = {
          client-id = { value = "clientId"; mode = "0444"; };
          client-secret = { value = "clientSecret"; mode = "0400"; };
          issuer = { value = "issuer"; mode = "0444"; };
        };
        owner = service.user;
        group = service.user;
      };
      onChange = restart service.sso.restart;
      dependsOn = [ "cert-node" ] ++ service.sso.dependsOn;
      inherit (service.sso) generation;
    };

  restart = unit: if unit == "" then [ ] else [ { inherit unit; action = "restart"; } ];

  files = service: listToAttrs (map
    (name:
      let file = service.files.${name}; in
      {
        name = "file-${service.name}-${name}";
        value = need "file" { inherit (file) ref; } {
          deliver = {
            files.${name} = { value = "content"; inherit (file) mode; };
            owner = service.user;
            group = service.user;
          };
          onChange = restart file.restart;
          dependsOn = [ "cert-node" ] ++ file.dependsOn;
          inherit (file) generation;
        };
      })
    (attrNames service.files));

  each = prefix: value: list: listToAttrs (map (s: { name = prefix + s.name; value = value s; }) list);

  when = condition: needs: if condition then needs else { };

  # id → need
  of = host:
    let
      services = map (s: t.services.${s}) host.services;
    in
    { cert-node = certificate host.id // { dependsOn = [ ]; }; }
    // each "cert-service-" (s: certificate (s.idOn host.name)) (filter (s: s.published || s.roles != [ ]) services)
    // each "cert-user-" (u: certificate t.users.${u.name}.id) (map (name: { inherit name; }) host.users)
    // each "oidc-" (client host) (filter (s: s.sso.mode == "oidc") services)
    # A cert provider makes its own server certificate; the others fetch theirs.
    // when (host.kinds != [ ] && !elem "cert" host.kinds) {
      cert-service-florete-provider =
        let mine = certificate host.providerID; in
        mine // { deliver = mine.deliver // { owner = "florete-provider"; }; };
    }
    // foldl' (all: s: all // files s) { } services
    // when (t.providers.config.hosts != [ ] && host.deploy == "network") {
      config-documents = need "config" { } { renew = { inherit (t.providers.config) interval staleAfter; }; };
    };
in
# host → its needs, sorted by id
mapAttrs
  (_: host:
    let needs = of host; in
    map (id: needs.${id} // { inherit id; }) (attrNames needs))
  t.hosts
