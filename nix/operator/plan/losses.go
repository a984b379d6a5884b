package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/nix/operator/compile"
)

// Loss is data, such as a database, or an account that nothing in the topology uses any more after
// a change, for example because a service was renamed. The field Then tells what happens to it.
type Loss struct {
	What string `json:"what"` // such as "database wiki_main at postgres"
	Then string `json:"then"` // description of what happens to it, and when
	need string // a need that had it, such as "database-wiki-main"
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
		client := request["service"]
		if request["client"] != nil {
			client = request["client"]
		}
		return "OIDC client of " + a.id(client), "ends at once with its secret, and people sign in anew, unless a service has it by the attribute called of sso"
	case "git":
		return "account " + shown(request["account"]) + " at " + shown(request["forge"]), "loses its tokens and its access at once, unless a token has it by the attribute called"
	}
	if _, ok := kinds[kind]; !ok && request["service"] != nil {
		service, need := a.id(request["service"]), shown(grant["need"])
		return need + " of " + service, "is requested no more, unless a need has it by the attribute called: its provider decides what becomes of what it made"
	}
	return "", ""
}

// losses returns the data and accounts that services can no longer reach after a change.
func losses(was, is compile.Snapshot) (all []Loss, err error) {
	var kept [2]map[string]Loss
	for s, snapshot := range []compile.Snapshot{was, is} {
		kept[s] = map[string]Loss{}
		for _, docs := range snapshot.Documents {
			var policy map[string]any
			if err := read(docs[document.DocPolicy], &policy); err != nil {
				return nil, err
			}
			a := at{walk: &walk{root: policy}}
			for _, v := range list(policy["grants"]) {
				if what, then := a.kept(object(v)); what != "" {
					kept[s][what] = Loss{what, then, shown(object(v)["need"])}
				}
			}
		}
	}
	for _, what := range slices.Sorted(maps.Keys(kept[before])) {
		if _, still := kept[after][what]; !still {
			all = append(all, kept[before][what])
		}
	}
	return all, nil
}

// renamed returns notes about services that lose something and are gone while others are new. Such
// services may have been renamed by hand.
func renamed(was, is compile.Snapshot, losses []Loss) (all []Note) {
	var fresh []string
	for _, name := range slices.Sorted(maps.Keys(is.Topology.Services)) {
		if _, had := was.Topology.Services[name]; !had {
			fresh = append(fresh, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(was.Topology.Services)) {
		service := was.Topology.Services[name]
		if _, still := is.Topology.Services[name]; still || len(fresh) == 0 {
			continue
		}
		loses := slices.ContainsFunc(losses, func(l Loss) bool {
			return strings.Contains(l.need+"-", "-"+name+"-")
		})
		alike := slices.DeleteFunc(slices.Clone(fresh), func(n string) bool {
			s := is.Topology.Services[n]
			return s.Port != service.Port || !slices.Equal(s.Hosts, service.Hosts)
		})
		to := "NEW"
		if len(alike) == 1 {
			to = alike[0]
		} else if len(fresh) == 1 {
			to = fresh[0]
		}
		if loses {
			all = append(all, Note{"service " + name, "it is gone, and so is what Lost lists of it: if you renamed it, take that back and run florctl service rename " + name + " " + to + ", which keeps its databases, accounts, clients and secrets"})
		}
	}
	return all
}
