package plan

import (
	"fmt"
	"maps"
	"slices"
)

// servers returns the rights about the servers on which a provider creates databases and logins.
// These concern the account that the provider has there, and the address given to services.
func servers(a at) (facts []fact) {
	all := object(a.v)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := object(all[name])
		a.rest(s, "address", "host", "keep", "kind", "port", "user")
		server := fmt.Sprintf("the %s server %s", shown(s["kind"]), name)
		facts = append(facts,
			fact{Right: Right{a.node(), "make logins at", fmt.Sprintf("%s, as %s at %s", server, shown(s["user"]), shown(s["address"]))}},
			fact{Right: Right{server, "be reached at", fmt.Sprintf("%s:%s", shown(s["host"]), shown(s["port"]))}},
			fact{Right: Right{a.node(), "drop databases that are named no more", "at " + name + ", after " + period(s["keep"], "no time")}},
		)
	}
	return facts
}
