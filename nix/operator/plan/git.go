package plan

import (
	"fmt"
	"maps"
	"slices"
)

// gitRights returns the rights of a caller with a token of a forge.
func gitRights(a at, caller string, request map[string]any) []fact {
	account := "account " + shown(request["account"]) + " at " + shown(request["forge"])
	fetch := Right{caller, "fetch", "tokens of " + account}
	facts := one(fetch)
	for _, name := range list(request["repositories"]) {
		facts = append(facts, fact{Right: Right{account, shown(request["access"]), "repository " + shown(name)}, because: []Right{fetch}})
	}
	return append(facts, lasting(Right{Who: "tokens of " + account, May: "be valid for"}, request["lifetime"], 0, fetch))
}

// forges returns the rights about the forges at which a provider creates accounts and tokens. These
// concern the account that the provider has there, and the address given to services.
func forges(a at) (facts []fact) {
	all := object(a.v)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := object(all[name])
		a.rest(f, "address", "host", "kind", "port", "user")
		forge := fmt.Sprintf("the %s forge %s", shown(f["kind"]), name)
		facts = append(facts,
			fact{Right: Right{a.node(), "make tokens at", fmt.Sprintf("%s, as %s at %s", forge, shown(f["user"]), shown(f["address"]))}},
			fact{Right: Right{forge, "be reached at", fmt.Sprintf("%s:%s", shown(f["host"]), shown(f["port"]))}},
		)
	}
	return facts
}
