# Faults of names in the rules of a tenant, which may only name things of that tenant.
lib:
let
  inherit (builtins)
    any
    attrNames
    attrValues
    concatLists
    concatMap
    concatStringsSep
    elem
    elemAt
    filter
    genList
    head
    length
    match
    ;
  inherit (lib)
    fault
    faultIf
    show
    suggest
    when
    ;
  inherit (import ../lib) closure isInvalid sorted;

  label = (import ../lib/constants.nix).spiffe.labelPattern;
in
rec {
  # Operators reach the process of kind token only through kind config on its host.
  # runtime :: Providers -> String -> Tenant -> [Fault]
  runtime =
    { config, token, ... }:
    n: e:
    faultIf (e.runtimeRules == true && token.hosts != [ ] && !any (h: elem h config.hosts) token.hosts) {
      id = "FL144";
      place = "tenants.${n}.runtimeRules";
      problem = "operators change rules through the provider of documents, which is not beside providers.token, on";
      value = concatStringsSep ", " token.hosts;
      remedy = "add ${show (head token.hosts)} to providers.config.hosts, or take runtimeRules out";
    };

  # Faults of a tenant: its rules, quotas and issuers.
  # tenant :: String -> Tenant -> [Fault]
  tenant =
    n: e:
    let
      place = "tenants.${n}";
      each =
        attribute: f:
        let
          all = e.${attribute};
        in
        concatLists (genList (i: f "${place}.${attribute}[${toString i}]" (elemAt all i)) (length all));
      quota =
        attribute:
        faultIf (!isInvalid e.quotas.${attribute} && length e.${attribute} > e.quotas.${attribute}) {
          id = "FL108";
          place = "${place}.${attribute}";
          problem = "its quota is ${toString e.quotas.${attribute}}, found";
          value = toString (length e.${attribute});
          remedy = "raise ${place}.quotas.${attribute}, or take some out";
        };
    in
    each "policies" (
      at: p:
      subject "${at}.subject" e p.subject ++ object "${at}.object" e p.object
    )
    ++ each "groupings" (at: g: subject "${at}.member" e g.member)
    ++ circles place e
    ++ quota "policies"
    ++ quota "groupings"
    ++ lib.twice {
      id = "FL009";
      key = i: i.issuer;
      place = i: "${place}.issuers.${i.name}.issuer";
      problem = other: "issuer ${other} is the same:";
      remedy = "take one of them out: a token would be of either";
    } (attrValues e.issuers)
    ++ concatMap (
      i:
      when (i.audiences == [ ]) (
        lib.missing "${place}.issuers.${i.name}" "audiences" "write audiences = [ \"…\" ];, or tokens for others would do"
      )
      ++ when (i.subjectClaim == "") (
        lib.missing "${place}.issuers.${i.name}" "subjectClaim" "write subjectClaim = \"sub\";"
      )
      ++ when (i.jwks != "" && i.discovery != "") (
        lib.excluded "write one of them" "${place}.issuers.${i.name}.jwks" "discovery"
      )
    ) (attrValues e.issuers);

  # The roles that the groupings of a tenant give to a principal.
  # next :: Tenant -> String -> [String]
  next =
    tenant: member:
    map (g: g.role) (filter (g: g.member == member && !isInvalid g.role) tenant.groupings);

  # Roles that contain themselves.
  circles =
    place: tenant:
    let
      roles = sorted (filter (r: match "role:.*" r != null) (map (g: g.member) tenant.groupings));
    in
    map (
      r:
      fault {
        id = "FL097";
        place = "${place}.groupings";
        problem = "the role has itself, by others or alone:";
        value = show r;
        remedy = "take it out of one of them";
      }
    ) (filter (r: elem r (closure (next tenant) (next tenant r))) roles);

  # Faults of an object. Only its last part may be a pattern.
  # object :: String -> Tenant -> String -> [Fault]
  object =
    place: tenant: o:
    let
      part = match "(${label}):(${label})(/([^/]+)(/([^/]+))?)?" o;
      kind = head part;
      of = elemAt part 2;
      namespace = elemAt part 5;
      name = elemAt part 7;
      sound =
        part != null
        && of == tenant.name
        && (
          if kind == "tenant" then
            namespace == null
          else if kind == "namespace" then
            namespace != null && name == null && isLabel namespace
          else
            name != null && namespace != "*" && isLabel namespace && isName name
        );
      isLabel = v: v == "*" || match label v != null;
      isName = v: v == "*" || match "[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}" v != null;
    in
    when (!isInvalid o) (
      if !sound then
        [
          (fault {
            id = "FL105";
            inherit place;
            problem = "not an object of tenant ${tenant.name}:";
            value = show o;
            remedy = "write tenant:${tenant.name}, namespace:${tenant.name}/NAMESPACE (or *), or KIND:${tenant.name}/NAMESPACE/NAME (or *)";
          })
        ]
      else
        faultIf (namespace != null && namespace != "*" && !elem namespace tenant.namespaces) {
          id = "FL106";
          inherit place;
          problem = "tenant ${tenant.name} has no namespace";
          value = show namespace;
          remedy = suggest "namespace" namespace tenant.namespaces;
        }
    );

  # Faults of a subject: a user of the tenant's issuers, or an identity of the cluster.
  # subject :: String -> Tenant -> String -> [Fault]
  subject =
    place: tenant: s:
    let
      claimed = match "(subject|group):([a-z0-9-]+)/.*" s;
      issuer = elemAt claimed 1;
      identity = match "(node|user|service)/([a-z0-9-]+)(/([a-z0-9-]+))?" s;
      kind = head identity;
      first = elemAt identity 1;
      last = elemAt identity 3;
    in
    if isInvalid s then
      [ ]
    else if claimed != null then
      faultIf (!tenant.issuers ? ${issuer}) {
        id = "FL106";
        inherit place;
        problem = "tenant ${tenant.name} has no issuer";
        value = show issuer;
        remedy = suggest "issuer" issuer (attrNames tenant.issuers);
      }
    else if identity == null then
      [ ]
    else if kind == "node" then
      lib.host place [ first ]
    else if kind == "user" then
      lib.user place [ first ]
    else if last == null then
      lib.service place [ first ]
    else
      lib.host place [ first ] ++ lib.service place [ last ];
}
