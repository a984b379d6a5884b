package plan

import (
	"maps"
	"slices"
)

// clientFields lists the fields of a request for an OpenID Connect client at the issuer.
var clientFields = []string{"allowedGroups", "claims", "client", "groups", "issuer", "postLogoutRedirectURIs", "public", "redirectURIs", "scopes", "service"}

// clientRights returns the rights of an OpenID Connect client.
func clientRights(a at, caller string, request map[string]any) []fact {
	service := a.id(request["service"])
	signs := Right{caller, "sign people in for", service}
	facts := one(signs, Right{caller, "act as", service})
	if request["client"] != nil {
		facts = append(facts, fact{Right: Right{caller, "sign people in as", "the client of " + a.id(request["client"])}})
	}
	facts = append(facts, fact{Right: Right{"issuer " + shown(request["issuer"]), "vouch for", "the users of " + service}})
	for _, uri := range list(request["redirectURIs"]) {
		facts = append(facts, fact{Right: Right{"sign-ins of " + service, "redirect to", shown(uri)}})
	}
	for _, uri := range list(request["postLogoutRedirectURIs"]) {
		facts = append(facts, fact{Right: Right{"sign-outs of " + service, "redirect to", shown(uri)}})
	}
	with := func(who, may, what string) { facts = append(facts, one(Right{who, may, what}, signs)...) }
	scopes := list(request["scopes"])
	if request["scopes"] == nil {
		scopes = []any{"openid", "email", "groups", "offline_access", "profile"}
	}
	for _, scope := range scopes {
		with(service, "request of its users", "scope "+shown(scope))
	}
	for _, group := range list(request["allowedGroups"]) {
		with("people in group "+shown(group), "sign in at", service)
	}
	if request["allowedGroups"] == nil {
		with("all people", "sign in at", service)
	}
	for _, claim := range slices.Sorted(maps.Keys(object(request["claims"]))) {
		with(service, "read of its users", shown(object(request["claims"])[claim])+" as claim "+claim)
	}
	facts = append(facts, groupsAt(service, request["groups"], signs)...)
	if request["public"] != nil {
		with("whoever names it", "begin sign-ins, without a secret, of", service)
	}
	return facts
}

// groupsAt returns the rights of people in groups that a service knows by names of its own. Without
// such names, the service sees the groups of the issuer.
func groupsAt(service string, names any, because Right) (facts []fact) {
	if names == nil {
		return one(Right{"people in any group", "be in", "the same group at " + service}, because)
	}
	for _, name := range slices.Sorted(maps.Keys(object(names))) {
		for _, group := range list(object(names)[name]) {
			facts = append(facts, one(Right{"people in group " + shown(group), "be in", "group " + name + " at " + service}, because)...)
		}
	}
	return facts
}

// groupsBehind returns the rights of people in groups at a service that they reach through an
// ingress.
func groupsBehind(a at) []fact {
	service := a.port(a.up[1])
	names := a.up[0]["groups"]
	if (names == nil) != (a.path[len(a.path)-1] == "need") {
		return nil
	}
	return groupsAt(service, names, Right{signedIn("anyone", gateOf(object(a.root), a.up[1])), "reach", service})
}

// connectors returns the rights about the identity providers at which people sign in. Their
// settings determine who the people are.
func connectors(a at) []fact {
	all := object(a.v)
	if all == nil {
		a.loosen(a.path, a.v)
		return nil
	}
	var facts []fact
	for _, name := range slices.Sorted(maps.Keys(all)) {
		of := all[name]
		if o := maps.Clone(object(of)); o != nil {
			delete(o, "title") // label of its button
			of = o
		}
		facts = append(facts, fact{Right: Right{a.path[len(a.path)-1] + " " + name + " " + shown(of), "vouch for", "people of " + a.node()}})
	}
	return facts
}
