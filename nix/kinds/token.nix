# Tokens of tenants, for services and for callers that exchange another token (RFC 8693).
let
  inherit (builtins)
    attrNames
    attrValues
    concatMap
    filter
    head
    listToAttrs
    mapAttrs
    match
    stringLength
    toJSON
    ;
  inherit (import ../language/types)
    between
    default
    listOf
    named
    of
    required
    ;
  inherit (import ../language/formats) issuer name;
  inherit (import ../lib) isInvalid optionalAttrs sorted;
  tenant = import ../language/tenant.nix;

  # Tenants whose tokens a service uses or verifies.
  tenantsOf = s: filter (n: !isInvalid n) (map (k: k.tenant) (attrValues s.tokens) ++ s.verifies);

  # Rules sorted, each once.
  canonical =
    rules:
    attrValues (
      listToAttrs (
        map (value: {
          name = toJSON value;
          inherit value;
        }) rules
      )
    );

  # A subject in the form for providers. A service on several hosts may have several IDs.
  idsOf =
    t: s:
    let
      service = match "service/([a-z0-9-]+)" s;
      of = t.services.${head service};
    in
    if match "[a-z]+/.*" s == null then
      [ s ]
    else if service != null && t.services ? ${head service} then
      sorted (concatMap of.idsOn of.hosts)
    else
      [ "spiffe://${t.trustDomain}/${s}" ];
in
{
  doc = "Issues tokens of tenants, and exchanges tokens of other issuers for them.";
  port = 8;
  alone = "each would sign with keys of its own, and the pages of the issuer have those of one";
  announced = true;
  operated = true;
  settings = {
    issuer =
      required
        "URL of the issuer. The pages of each tenant are below it, at `/v1/tenants/<tenant>`."
        "\"http://tokens.demo.flor.rete\""
        issuer;
    generation = default "Raise it when a signing key may be known to others. All tokens end." 1 (
      between 1 1000000 "a generation"
    );
  };
  policy = t: {
    inherit (t.providers.token) issuer generation;
    tenants = mapAttrs (
      _: e:
      {
        inherit (e) lifetime;
        inherit (e.quotas) tokensPerMinute;
        namespaces = sorted e.namespaces;
        issuers = mapAttrs (
          _: i: removeAttrs i [ "name" ] // { audiences = sorted i.audiences; }
        ) e.issuers;
        policies = canonical (
          concatMap (p: map (subject: p // { inherit subject; }) (idsOf t p.subject)) e.policies
        );
        groupings = canonical (
          concatMap (g: map (member: g // { inherit member; }) (idsOf t g.member)) e.groupings
        );
      }
      // optionalAttrs e.runtimeRules {
        runtimeRules = {
          inherit (e.quotas) policies groupings;
        };
      }
    ) t.tenants;
  };

  service = {
    tokens = of "Tokens of tenants for the service itself, delivered as `needs/token-<service>-<name>/current/token` and replaced after half of their lifetime." (
      named {
        what = "token";
        max = 53; # "token-<service>-<name>" is a DNS label
      } tenant.token
    );
    verifies = of "Tenants whose tokens the service verifies. Their keys are in `needs/tenant-<tenant>/current/jwks.json` of its hosts." (
      listOf name
    );
  };

  entries.tenants = {
    doc = "Tenants: which subject may do which action on which object of a tenant, by tokens of `providers.token`.";
    type = named {
      what = "tenant";
      max = 56; # "tenant-<name>" is a DNS label
    } tenant.type;
    on = t: mapAttrs (_: host: sorted (concatMap tenantsOf host.wanting)) t.hosts;
    shown = e: {
      inherit (e) namespaces policies groupings;
      issuers = mapAttrs (_: i: i.issuer) e.issuers;
    };
  };

  reasons =
    clean:
    map (n: "tenants.${n} needs it") (attrNames clean.tenants)
    ++ map (s: "services.${s.name} needs it") (
      filter (s: tenantsOf s != [ ]) (attrValues clean.services)
    );

  needs =
    t: host:
    let
      inherit (t.providers.token) issuer;
      services = host.wanting;
      renew.atPercent = 50;
      token = s: k: {
        id = "token-${s.name}-${k.name}";
        for = s.idOn host.name;
        request = {
          inherit issuer;
          inherit (k) tenant;
          id = s.idOn host.name;
        }
        // optionalAttrs (k.requested != [ ]) { requested = sorted k.requested; }
        // optionalAttrs (k.resources != [ ]) { resources = sorted k.resources; };
        files.token = {
          value = "token";
          mode = "0400";
        };
        owner = s.user;
        inherit renew;
      };
    in
    concatMap (s: map (token s) (filter (k: !isInvalid k.tenant) (attrValues s.tokens))) (
      filter (s: s.tokens != { }) services
    )
    ++ map (n: {
      id = "tenant-${n}";
      for = host.id;
      request = {
        inherit issuer;
        tenant = n;
      };
      files."jwks.json" = {
        value = "jwks";
        mode = "0444";
      };
      inherit renew;
    }) (sorted (concatMap (s: filter (n: n != "" && !isInvalid n) s.verifies) services));

  check =
    {
      clean,
      shapes,
      t,
      lib,
      ...
    }:
    let
      inherit (lib)
        faultIf
        serviceOf
        show
        unknown
        when
        ;
      rules = import ../check/tenantrules.nix lib;
      known = unknown "FL107" "tenant" clean.tenants;
      provider = clean.providers.token;
      pages = serviceOf provider.issuer;
      socket = "unix:/run/florete-provider-token/token.sock";
    in
    {
      top =
        import ../check/issuerpages.nix { inherit clean lib; } {
          kind = "token";
          leads = "upstream = ${show socket}; identity = \"proxy-v2\";";
          inherit t;
        }
        ++
          faultIf
            (
              pages != null
              && clean.services ? ${pages}
              && clean.services.${pages}.identity != "proxy-v2"
            )
            {
          id = "FL028";
          place = "services.${pages}.identity";
          problem = "providers.token answers callers that are announced by \"proxy-v2\", found";
          value = show clean.services.${pages}.identity;
          remedy = "write services.${pages}.identity = \"proxy-v2\";";
        };
      service =
        n: s:
        known "services.${n}.verifies" s.verifies
        ++ concatMap (
          k:
          let
            place = "services.${n}.tokens.${k.name}";
          in
          known "${place}.tenant" [ k.tenant ]
          ++ faultIf (stringLength n + stringLength k.name > 56) {
            id = "FL025";
            inherit place;
            problem = "names of service and token together have at most 56 characters, these";
            value = toString (stringLength n + stringLength k.name);
            remedy = "shorten one of them";
          }
          ++ when (clean.tenants ? ${k.tenant}) (
            concatMap (rules.object "${place}.resources" clean.tenants.${k.tenant}) k.resources
          )
        ) (attrValues s.tokens);
      warnings = import ../check/tenants.nix {
        inherit clean lib shapes t;
        inherit (rules) next;
      };
      entries.tenants =
        n: e:
        when (shapes.tenants.${n} == [ ]) (rules.tenant n e ++ rules.runtime clean.providers n e);
    };
}
