package plan

import (
	"maps"
	"slices"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/nix/operator/compile"
)

// Loss is data or an account that no need refers to any more after a change, such as the database
// of a service that was renamed. Then tells what becomes of it.
type Loss struct {
	What string `json:"what"` // such as "database wiki_main at postgres"
	Then string `json:"then"` // description of what happens to it, and when
}

// kept describes the data that a provider keeps for a grant, and what happens to the data when the
// grant is removed.
func (a at) kept(grant map[string]any) (what, then string) {
	kind, request := shown(grant["kind"]), object(grant["request"])
	switch kind {
	case "database":
		server := object(object(object(object(a.root["kinds"])["database"])["servers"])[shown(request["server"])])
		return "database " + shown(request["name"]) + " at " + shown(request["server"]),
			"is closed at once, and dropped with its data after " + period(server["keep"], "no time") + ", unless a service has it again by then, by the attribute called of databases"
	case "secret":
		return "secret " + shown(request["secret"]), "is forgotten after 30 days, unless somebody reads it again by then"
	case "oidc":
		return "OIDC client of " + a.id(request["service"]), "ends with its secret: nobody signs in by it any more"
	case "git":
		return "account " + shown(request["account"]) + " at " + shown(request["forge"]), "ends with its tokens"
	}
	if _, ok := kinds[kind]; !ok && request["service"] != nil {
		service, need := a.id(request["service"]), shown(grant["need"])
		return need + " of " + service, "is asked for no more: its provider decides what becomes of it"
	}
	return "", ""
}

// losses returns the data and accounts that services can no longer reach after a change.
func losses(was, is compile.Snapshot) (all []Loss, err error) {
	var kept [2]map[string]string
	for s, snapshot := range []compile.Snapshot{was, is} {
		kept[s] = map[string]string{}
		for _, docs := range snapshot.Documents {
			var policy map[string]any
			if err := read(docs[document.DocPolicy], &policy); err != nil {
				return nil, err
			}
			a := at{walk: &walk{root: policy}}
			for _, v := range list(policy["grants"]) {
				if what, then := a.kept(object(v)); what != "" {
					kept[s][what] = then
				}
			}
		}
	}
	for _, what := range slices.Sorted(maps.Keys(kept[before])) {
		if _, still := kept[after][what]; !still {
			all = append(all, Loss{what, kept[before][what]})
		}
	}
	return all, nil
}
