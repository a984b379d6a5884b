# Public names of services, and their certificates on hosts with an ingress.
let
  inherit (builtins)
    any
    attrNames
    attrValues
    concatMap
    elem
    filter
    groupBy
    hashString
    head
    listToAttrs
    mapAttrs
    match
    stringLength
    substring
    ;
  inherit (import ../lib) optionalAttrs when;
  inherit (import ../lib/names.nix) entrance;
  address = import ./address.nix;

  endsIn =
    domain: name:
    let
      more = stringLength name - stringLength domain - 1;
    in
    name == domain || more > 0 && substring more (-1) name == ".${domain}";

  # The name without its first label. Empty for a single label, and for a name that is not valid.
  above =
    name:
    let
      rest = match "[^.]+\\.(.*)" name;
    in
    if rest == null then "" else head rest;

  isWild = name: substring 0 2 name == "*.";
  short = text: substring 0 16 (hashString "sha256" text);
  isInternal = p: name: any (d: endsIn d name) p.internal;

  # The certificate for a public name of a service: its own, or a wildcard certificate.
  certificate =
    t: s: public:
    let
      parent = above public;
      wild = isWild public || elem parent t.providers.tls.wildcards;
      name = if wild then "*.${parent}" else public;
    in
    {
      # Names of services begin with a letter or digit, so "tls--" is not the need of a service.
      id =
        if wild then
          "tls--${short parent}"
        else if public == s.tlsName && t.services ? ${s.name} then
          "tls-${s.name}"
        else
          "tls--${short "name ${public}"}";
      names = [ name ];
      internal = isInternal t.providers.tls public;
      what = "certificate for ${name}";
    };

  networks = from: optionalAttrs (from != [ ]) { from = address.networks from; };
  written = name: value: optionalAttrs (value != null) { ${name} = value; };

  # The rules of a service for its public names, as in documents: { } if it has none.
  rules =
    s:
    let
      i = s.ingress;
      path =
        p:
        {
          path = p.name;
        }
        // networks p.from
        // optionalAttrs p.deny { deny = true; }
        // optionalAttrs (p.port != "") { inherit (p) port; };
    in
    networks i.from
    // optionalAttrs (i.paths != { }) { paths = map path (attrValues i.paths); }
    // written "hsts" i.hsts
    // written "maxBody" i.maxBody
    // written "timeout" i.timeout;

  # Reports whether a host serves the public names of a service, if it reaches the service.
  serves =
    host: s:
    elem "ingress" host.capabilities && (s.ingress.hosts == [ ] || elem host.name s.ingress.hosts);

  isNamed = s: s.tlsName != "" && s.visibility == "public";

  # Services of other clusters with a public name here. Their names begin with the scheme of an ID, so
  # no service here has the same name.
  abroad =
    t:
    map (s: {
      inherit (s) ingress tlsName;
      inherit (s.instance) name;
      tlsAliases = [ ];
      reachables = [ s.instance ];
    }) (filter (s: s.tlsName != "") (concatMap (c: c.services) t.abroad));

  # name → the services that have it
  owners =
    services:
    groupBy (e: e.name) (
      concatMap (s: map (name: { inherit name s; }) ([ s.tlsName ] ++ s.tlsAliases)) (
        filter isNamed services
      )
    );
  # The service that has a name, exactly or with a wildcard, or null.
  ownerIn =
    owners: name:
    let
      has = owners.${name} or owners."*.${above name}" or [ ];
    in
    if has == [ ] then null else (head has).s.name;

  # Reports whether strangers reach a service by the ingress of a host.
  # enters :: Topology -> Host -> Service -> Bool
  enters =
    t: host: s:
    serves host s
    && any (
      i: i.value.entry.port or entrance == entrance && t.access.reachableOn.${host.name} ? ${i.name}
    ) s.reachables;

  # service → the names that are redirected to its names
  redirects =
    t:
    let
      ownerOf = ownerIn (owners (attrValues t.services));
    in
    removeAttrs (groupBy (
      name:
      let
        owner = ownerOf t.redirects.${name};
      in
      if owner == null then "" else owner
    ) (attrNames t.redirects)) [ "" ];

  # host → its certificates by ID, if it has an ingress.
  onHosts =
    t:
    let
      named = filter isNamed (attrValues t.services) ++ abroad t;
      redirected = redirects t;
    in
    mapAttrs (
      _: host:
      listToAttrs (
        concatMap
          (
            s:
            map (public: rec {
              value = certificate t s public;
              name = value.id;
            }) ([ s.tlsName ] ++ s.tlsAliases ++ redirected.${s.name} or [ ])
          )
          (
            when (elem "ingress" host.capabilities) (
              filter (enters t host) named
            )
          )
      )
    ) t.hosts;
in
{
  inherit
    abroad
    enters
    isInternal
    isWild
    onHosts
    ownerIn
    owners
    redirects
    rules
    serves
    ;
}
