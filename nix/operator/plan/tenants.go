package plan

import (
	"maps"
	"slices"
)

// tokenRights returns the rights of the bearer of a tenant's token, and the rights of the holder of
// the keys that verify tokens. If a request names no actions or objects, it includes all.
func tokenRights(a at, caller string, request map[string]any) []fact {
	tenant := "tenant " + shown(request["tenant"])
	if request["id"] == nil {
		return one(Right{"issuer " + shown(request["issuer"]), "vouch for", "tokens of " + tenant + " at " + caller}, join(caller))
	}
	facts := one(Right{caller, "act as", a.id(request["id"])})
	all := func(field, none string) []string {
		var named []string
		for _, v := range list(request[field]) {
			named = append(named, shown(v))
		}
		if len(named) == 0 {
			named = []string{none}
		}
		return named
	}
	for _, action := range all("requested", "whatever is permitted") {
		for _, object := range all("resources", "all objects") {
			facts = append(facts, fact{Right: Right{a.id(request["id"]), "have of " + tenant, action + " on " + object}})
		}
	}
	return facts
}

// tenants returns the rights to objects of a tenant, the rights of the issuers that are trusted for
// the tenant, and the tenant's limits.
func tenants(a at) (facts []fact) {
	all := object(a.v)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t, tenant := object(all[name]), "tenant "+name
		a.path = append(slices.Clone(a.path[:3]), name)
		a.rest(t, "groupings", "issuers", "lifetime", "namespaces", "policies", "runtimeRules", "tokensPerMinute")
		is := Right{a.node(), "issue tokens of", tenant}
		add := func(who, may, what string) { facts = append(facts, fact{Right: Right{who, may, what}}) }
		facts = append(facts, fact{Right: is},
			lasting(Right{Who: "tokens of " + tenant, May: "be valid for"}, t["lifetime"], ever, is),
			atMost(Right{Who: tenant, May: "have tokens of each provider host, each minute up to"}, t["tokensPerMinute"], is))
		for _, v := range list(t["policies"]) {
			p := object(v)
			a.rest(p, "action", "object", "subject")
			add(a.id(p["subject"]), "have of "+tenant, shown(p["action"])+" on "+shown(p["object"])+", by a policy")
		}
		for _, v := range list(t["groupings"]) {
			g := object(v)
			a.rest(g, "member", "role")
			add(a.id(g["member"]), "have of "+tenant, shown(g["role"]))
		}
		for _, v := range list(t["namespaces"]) {
			add(tenant, "have", "namespace "+shown(v))
		}
		if t["runtimeRules"] != nil {
			rules := object(t["runtimeRules"])
			a.rest(rules, "groupings", "policies")
			change := Right{"whom it permits", "change at run time", "who may do what at " + tenant}
			facts = append(facts, fact{Right: change},
				atMost(Right{Who: tenant, May: "have policies, up to"}, rules["policies"], change),
				atMost(Right{Who: tenant, May: "have groupings, up to"}, rules["groupings"], change))
		}
		issuers := object(t["issuers"])
		for _, name := range slices.Sorted(maps.Keys(issuers)) {
			facts = append(facts, a.issuer(tenant, name, object(issuers[name]))...)
		}
	}
	return facts
}

// issuer returns the rights of a foreign issuer whose tokens are exchanged for those of a tenant.
func (a at) issuer(tenant, name string, issuer map[string]any) (facts []fact) {
	a.path = append(slices.Clone(a.path), "issuers", name)
	a.rest(issuer, "audiences", "discovery", "groupsClaim", "issuer", "jwks", "subjectClaim")
	who := "issuer " + shown(issuer["issuer"])
	be := Right{who, "vouch for", name + "/* at " + tenant}
	facts = one(be)
	for _, audience := range list(issuer["audiences"]) {
		facts = append(facts, one(Right{"tokens of " + who + " for audience " + shown(audience), "be exchanged for", "tokens of " + tenant}, be)...)
	}
	for _, from := range []string{"discovery", "groupsClaim", "jwks", "subjectClaim"} {
		if v := shown(issuer[from]); v != "" {
			facts = append(facts, one(Right{who, "be read at " + tenant, "by " + from + " " + v}, be)...)
		} else {
			facts = append(facts, one(Right{who, "be read at " + tenant, "without " + from}, be)...)
		}
	}
	return facts
}
