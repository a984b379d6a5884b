# Public names of services, and their certificates on hosts with an ingress.
let
  inherit (builtins)
    any
    attrValues
    concatMap
    elem
    filter
    hashString
    head
    listToAttrs
    mapAttrs
    match
    stringLength
    substring
    ;
  inherit (import ../lib) when;
  inherit (import ../lib/names.nix) entrance;

  endsIn =
    domain: name:
    let
      more = stringLength name - stringLength domain - 1;
    in
    name == domain || more > 0 && substring more (-1) name == ".${domain}";

  above = name: head (match "[^.]+\\.(.*)" name);

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
        else if public == s.tlsName then
          "tls-${s.name}"
        else
          "tls--${short "name ${public}"}";
      names = [ name ];
      internal = isInternal t.providers.tls public;
      what = "certificate for ${name}";
    };

  # host → its certificates by ID, if it has an ingress.
  onHosts =
    t:
    let
      named = filter (s: s.tlsName != "" && s.visibility == "public") (attrValues t.services);
      isEntrance = i: i.value.entry.port or entrance == entrance;
    in
    mapAttrs (
      name: host:
      listToAttrs (
        concatMap
          (
            s:
            map (public: rec {
              value = certificate t s public;
              name = value.id;
            }) ([ s.tlsName ] ++ s.tlsAliases)
          )
          (
            when (elem "ingress" host.capabilities) (
              filter (s: any (i: isEntrance i && t.access.reachableOn.${name} ? ${i.name}) s.reachables) named
            )
          )
      )
    ) t.hosts;
in
{
  inherit isInternal isWild onHosts;
}
