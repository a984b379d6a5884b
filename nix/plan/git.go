package plan

import (
	"fmt"
	"maps"
	"slices"
)

// gitRights are those of who has a token of a forge.
func gitRights(caller string, request map[string]any) []fact {
	account := "account " + short(request["account"]) + " at " + short(request["forge"])
	fetch := Right{caller, "fetch", "tokens of " + account}
	facts := one(fetch)
	for _, name := range list(request["repositories"]) {
		facts = append(facts, fact{Right: Right{account, short(request["access"]), "repository " + short(name)}, because: []Right{fetch}})
	}
	return append(facts, fact{Right: Right{"tokens of " + account, "be valid for", lasting(request["lifetime"], "no time")}, because: []Right{fetch}})
}

// forges are where a provider makes accounts and tokens, as whom, and where services are sent.
func forges(a at) (facts []fact) {
	all := object(a.v)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := object(all[name])
		a.rest(f, "address", "host", "kind", "port", "user")
		forge := fmt.Sprintf("the %s forge %s", short(f["kind"]), name)
		facts = append(facts,
			fact{Right: Right{a.node(), "make tokens at", fmt.Sprintf("%s, as %s at %s", forge, short(f["user"]), short(f["address"]))}},
			fact{Right: Right{forge, "be reached at", fmt.Sprintf("%s:%s", short(f["host"]), short(f["port"]))}},
		)
	}
	return facts
}
