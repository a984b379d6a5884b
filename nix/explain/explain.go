package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/florete/florete"
	"github.com/florete/florete/nix/compile"
)

// Explanation says whether a principal reaches a service, and why. It does when
// there is a chain and no obstacle.
type Explanation struct {
	Principal florete.ID `json:"principal"`
	Service   string     `json:"service"`
	Allowed   bool       `json:"allowed"`
	// Chains are the ways that the principal's roles open.
	Chains []Chain `json:"chains"`
	// Reached are the identities of the service that they lead to, or ports of these, sorted; none for all.
	Reached []compile.Face `json:"reached,omitempty"`
	// Hosts are those that act as the principal.
	Hosts []string `json:"hosts"`
	// Obstacles are in the way whatever the principal's roles. Each must go.
	Obstacles []Obstacle `json:"obstacles"`
	// Ways are those that others have, when the principal has no chain.
	Ways []Way `json:"ways"`
	// Excepted are the chains that would open it, but for exceptions of roles.
	Excepted []Chain `json:"excepted,omitempty"`
	// Remedies each give the principal a chain when it has none, the one that
	// opens least besides first.
	Remedies []Remedy `json:"remedies"`
	Edge
	nodes   int
	domain  string // of the cluster
	foreign bool   // is the principal of another one?
}

// Way is a way to a service and those who have it.
type Way struct {
	Chain
	Holders []florete.ID `json:"holders"` // sorted
	// Ends is when those of some holders end.
	Ends map[florete.ID]florete.Time `json:"ends,omitempty"`
}

// Obstacle is in the way to a service, whatever roles someone has.
type Obstacle struct {
	Problem string `json:"problem"`
	Remedy  Remedy `json:"remedy"`
}

// Remedy is a change of the topology.
type Remedy struct {
	Place string `json:"place"` // "users.alice.roles"
	Value string `json:"value"` // what is added, or for visibility what is written there
	// Opens is what the change opens besides what was asked for, sorted.
	Opens []Pair `json:"opens"`
}

// Pair is one right of access.
type Pair struct {
	Principal florete.ID `json:"principal"`
	Service   string     `json:"service"`
}

// Explain says why p reaches the service, or what is missing.
func (a *Access) Explain(p Principal, service string) Explanation {
	of, _ := a.target(service)
	e := Explanation{
		Principal: p.ID,
		Service:   service,
		Chains:    a.held(p, service),
		Hosts:     append([]string{}, p.Hosts...),
		Obstacles: a.obstacles(p, of),
		Ways:      []Way{},
		Remedies:  []Remedy{},
		Edge:      a.edge(service),
		nodes:     len(a.t.Hosts),
		domain:    a.t.TrustDomain,
		foreign:   p.foreign,
	}
	if len(e.Chains) == 0 && !a.stranger(p, service) {
		e.Ways = a.Ways(service)
		e.Excepted = p.held(a.shut(service))
		e.Remedies = append(e.Remedies, a.without(p, of).remedies(p, service)...)
	}
	e.Allowed = len(e.Chains) > 0 && len(e.Obstacles) == 0
	if e.Allowed {
		e.Reached = a.reached(e.Chains, service)
	}
	return e
}

// Ways are the ways to a service and all who hold them, whether or not an
// obstacle is in theirs.
func (a *Access) Ways(service string) []Way {
	ways := []Way{}
	for _, c := range a.to(service) {
		others := func(id florete.ID) bool { return a.stranger(a.principals[id], service) }
		w := Way{Chain: c, Holders: slices.DeleteFunc(append([]florete.ID{}, a.holders[c.Role]...), others)}
		for _, id := range w.Holders {
			if end := a.principals[id].until[c.Role]; !end.IsZero() {
				if w.Ends == nil {
					w.Ends = map[florete.ID]florete.Time{}
				}
				w.Ends[id] = end
			}
		}
		ways = append(ways, w)
	}
	return ways
}

func (a *Access) obstacles(p Principal, service string) []Obstacle {
	found := []Obstacle{}
	if a.stranger(p, service) {
		return found
	}
	if s := a.t.Services[service]; !s.Published {
		var pairs []Pair
		for _, c := range a.chains[service] {
			for _, id := range a.holders[c.Role] {
				if len(a.principals[id].Hosts) > 0 {
					pairs = append(pairs, Pair{id, service})
				}
			}
		}
		found = append(found, Obstacle{
			fmt.Sprintf("visibility %q keeps service/%s to its own host", s.Visibility, service),
			Remedy{"services." + service + ".visibility", "cluster", besides(pairs, Pair{p.ID, service})},
		})
	}
	if len(p.Hosts) == 0 {
		var pairs []Pair
		for s := range a.reach(p, p.Roles) {
			pairs = append(pairs, Pair{p.ID, s})
		}
		found = append(found, Obstacle{
			fmt.Sprintf("no host acts as %s", p.ID.Short()),
			Remedy{"hosts.<host>.users", p.ID.Name(), besides(pairs, Pair{p.ID, service})},
		})
	}
	return found
}

// without is the access when p's obstacles to the service are gone.
func (a *Access) without(p Principal, service string) *Access {
	b := *a
	if s := a.t.Services[service]; !s.Published {
		s.Published = true
		b.t.Services = maps.Clone(a.t.Services)
		b.t.Services[service] = s
	}
	if len(p.Hosts) == 0 {
		p.Hosts = []string{"<host>"}
		b.principals = maps.Clone(a.principals)
		b.principals[p.ID] = p
	}
	return &b
}

// remedies are the single changes that give p a chain: one more role, or the
// service in a role or a group that it has.
func (a *Access) remedies(p Principal, service string) []Remedy {
	of, _ := a.target(service)
	remedies := map[[2]string]Remedy{}
	add := func(place, value string, pairs []Pair) {
		remedies[[2]string{place, value}] = Remedy{place, value, besides(pairs, Pair{p.ID, of})}
	}
	for _, c := range a.to(service) {
		// All nodes have the one, and nobody foreign may have the other.
		if c.Role != "node" && !(p.foreign && c.Role == "operator") {
			add(p.place, c.Role, a.given(p.place, c.Role))
		}
	}
	for _, role := range p.Roles {
		if place := a.foreign[service]; place != "" {
			add(place, role, a.let(a.having(role), service))
			continue
		}
		if a.excepts(role, service) {
			continue
		}
		add("roles."+role+".services", service, a.let(a.having(role), service))
		for _, g := range a.t.Roles[role].ServiceGroups {
			add("serviceGroups."+g, service, a.let(a.through(g), service))
		}
	}
	return slices.SortedFunc(maps.Values(remedies), func(r, o Remedy) int {
		return cmp.Or(cmp.Compare(len(r.Opens), len(o.Opens)), cmp.Compare(r.Place, o.Place), cmp.Compare(r.Value, o.Value))
	})
}

// given is what one more role opens to all whose roles are written at place.
func (a *Access) given(place, role string) (pairs []Pair) {
	for _, p := range a.principals {
		if p.place != place || len(p.Hosts) == 0 {
			continue
		}
		had := a.reach(p, p.Roles)
		for s, faces := range a.reach(p, []string{role}) {
			if slices.ContainsFunc(faces, func(f compile.Face) bool { return !slices.Contains(had[s], f) }) {
				pairs = append(pairs, Pair{p.ID, s})
			}
		}
	}
	return pairs
}

// let is what opens when the service is one of those that the roles reach.
func (a *Access) let(roles []string, service string) (pairs []Pair) {
	of, _ := a.target(service)
	for _, role := range roles {
		for _, id := range a.holders[role] {
			if p := a.principals[id]; len(p.Hosts) > 0 && !a.stranger(p, service) && len(a.held(p, service)) == 0 {
				pairs = append(pairs, Pair{id, of})
			}
		}
	}
	return pairs
}

// excepts is whether a role does not lead to a service, whatever it names.
func (a *Access) excepts(role, service string) bool {
	of, at := a.target(service)
	return slices.ContainsFunc(a.t.Services[of].Faces(), func(f compile.Face) bool {
		return at(f) && slices.ContainsFunc(a.t.Roles[role].Except, func(name string) bool { return a.takes(Exception{role, name}, f) })
	})
}

// having are a role, and those that it is in.
func (a *Access) having(role string) []string {
	all := []string{role}
	for name, r := range a.t.Roles {
		if slices.Contains(r.Roles, role) {
			all = append(all, name)
		}
	}
	return all
}

// through are the roles that reach a group.
func (a *Access) through(group string) (roles []string) {
	for name, r := range a.t.Roles {
		if slices.Contains(r.ServiceGroups, group) {
			roles = append(roles, name)
		}
	}
	return roles
}

// besides are the pairs but for the one that was asked for, as a sorted set.
func besides(pairs []Pair, asked Pair) []Pair {
	slices.SortFunc(pairs, func(p, q Pair) int {
		return cmp.Or(compareID(p.Principal, q.Principal), cmp.Compare(p.Service, q.Service))
	})
	return append([]Pair{}, slices.DeleteFunc(slices.Compact(pairs), func(p Pair) bool { return p == asked })...)
}
