# Warnings of rules of tenants that permit nothing. Rules added at run time may change that.
{
  clean,
  lib,
  next,
  shapes,
  t,
}:
let
  inherit (builtins)
    attrValues
    concatLists
    concatMap
    elem
    elemAt
    filter
    genList
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

  # Policies for a role that nobody has. A rule added at run time may give it to somebody.
  # idle :: String -> Tenant -> [Fault]
  idle =
    n: tenant:
    let
      roles = map (g: g.role) tenant.groupings;
      at =
        i:
        let
          inherit (elemAt tenant.policies i) subject;
        in
        faultIf (match "role:.*" subject != null && !elem subject roles) {
          id = "FL152";
          place = "tenants.${n}.policies[${toString i}].subject";
          problem = "no grouping gives the role";
          value = show subject;
          remedy = suggest "role" subject (sorted (filter (r: !isInvalid r) roles));
        };
    in
    when (tenant.runtimeRules != true) (concatLists (genList at (length tenant.policies)));

  # Actions that a service requests and no policy permits on any object: the provider denies the
  # token, unless a rule added at run time permits it.
  # denied :: String -> Tenant -> [String] -> [String] -> [Fault]
  denied =
    place: tenant: subjects: requested:
    let
      who = closure (next tenant) subjects;
      permitted = map (p: p.action) (filter (p: elem p.subject who) tenant.policies);
    in
    when (tenant.runtimeRules != true) (
      map (
        action:
        fault {
          id = "FL150";
          inherit place;
          problem = "no policy of tenant ${tenant.name} permits the service this action, so it gets no token:";
          value = show action;
          remedy = "write a policy in tenants.${tenant.name}.policies, or take it out";
        }
      ) (filter (a: !isInvalid a && !elem a permitted) requested)
    );
in
{
  service =
    n: s:
    concatMap (
      k:
      when (clean.tenants ? ${k.tenant}) (
        denied "services.${n}.tokens.${k.name}.requested" clean.tenants.${k.tenant} (
          [ "service/${n}" ] ++ map (h: "service/${h}/${n}") t.services.${n}.hosts
        ) k.requested
      )
    ) (attrValues s.tokens);
  entries.tenants = n: tenant: when (shapes.tenants.${n} == [ ]) (idle n tenant);
}
