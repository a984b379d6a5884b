package explain

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/nix/operator/compile"
)

// Access is the access of one topology, indexed.
type Access struct {
	t          compile.Topology
	principals map[spiffe.ID]Principal
	holders    map[string][]spiffe.ID // by role, sorted
	chains     map[string][]Chain     // by service, sorted; published or not
	foreign    map[string]string      // service of another cluster → the place of its roles
	abroad     map[string][]string    // role → those of them that it leads to
	excepted   map[string][]Chain     // by service: those that exceptions of their roles end
}

// Principal is someone who holds roles.
type Principal struct {
	ID    spiffe.ID
	Roles []string                 // sorted
	Hosts []string                 // that act as it, sorted; only a user's may be empty; of a foreign one its trust domain or cluster
	place string                   // of its roles in the topology
	teams map[string]string        // role → the team that gives it
	until map[string]unixtime.Time // role → when it ends

	foreign bool     // of another cluster
	ended   []string // roles that it had, sorted
}

// New indexes a topology, as it is while no role in it has ended.
func New(t compile.Topology) *Access { return At(t, time.Time{}) }

// At indexes a topology as it is at a time. Hosts end roles by their clocks, while Nix takes out
// only what ended before the commit that it compiles.
func At(t compile.Topology, now time.Time) *Access {
	t.Services = maps.Clone(t.Services)
	if t.Services == nil {
		t.Services = map[string]compile.Service{}
	}
	a := &Access{
		t:          t,
		principals: map[spiffe.ID]Principal{},
		holders:    map[string][]spiffe.ID{},
		chains:     map[string][]Chain{},
		foreign:    map[string]string{},
		abroad:     map[string][]string{},
		excepted:   map[string][]Chain{},
	}
	add := func(p Principal) {
		ended := func(role string) bool { end := p.until[role]; return !end.IsZero() && !end.After(now) }
		for _, role := range p.Roles {
			if ended(role) {
				p.ended = append(p.ended, role)
			}
		}
		p.Roles = slices.DeleteFunc(slices.Clone(p.Roles), ended)
		a.principals[p.ID] = p
		for _, role := range p.Roles {
			a.holders[role] = append(a.holders[role], p.ID)
		}
	}
	for name, h := range t.Hosts {
		add(Principal{h.ID, h.Roles, []string{name}, "hosts." + name + ".roles", nil, h.Until, false, nil})
	}
	for name, u := range t.Users {
		teams := map[string]string{}
		for _, team := range slices.Backward(u.Teams) { // the nearest counts
			for _, role := range t.Teams[team].Roles {
				teams[role] = team
			}
			for role, end := range t.Teams[team].Until {
				if !u.Until[role].IsZero() && !end.Before(u.Until[role].Time) { // of who is in it up to a time that is the end
					teams[role] = team
				}
			}
		}
		add(Principal{u.ID, u.Roles, u.Hosts, "users." + name + ".roles", teams, u.Until, false, nil})
	}
	for name, s := range t.Services {
		for _, id := range s.IDs {
			if id.TrustDomain() != t.TrustDomain {
				continue
			}
			hosts := s.Hosts
			if id.Node() != "" {
				hosts = []string{id.Node()}
			}
			add(Principal{id, s.Roles, hosts, "services." + name + ".roles", nil, s.Until, false, nil})
		}
	}
	for place, other := range t.Others() {
		origin := t.Origin(place)
		written := func(id spiffe.ID, attribute, before string) string {
			_, path, _ := strings.Cut(id.String(), "://"+id.TrustDomain()+"/"+before)
			return place + "." + attribute + "." + strconv.Quote(path) + ".roles"
		}
		for id, roles := range other.Identities {
			add(Principal{id, roles, []string{origin}, written(id, "identities", ""), nil, nil, true, nil})
		}
		for id, roles := range other.Services {
			a.leadAbroad(id, roles, origin)
			a.foreign[id.String()] = written(id, "services", "service/")
		}
	}
	for _, ids := range a.holders {
		slices.SortFunc(ids, compareID)
	}
	for name, role := range t.Roles {
		a.lead(Chain{Role: name}, role)
		for _, in := range role.Roles {
			a.lead(Chain{Role: name, In: in}, t.Roles[in])
		}
	}
	for s, chains := range a.chains {
		slices.SortFunc(chains, compareChain)
		a.chains[s] = slices.CompactFunc(chains, func(c, d Chain) bool { return compareChain(c, d) == 0 })
	}
	return a
}

// leadAbroad adds a service of another cluster, and the chains of roles that lead there: those
// that the service names, and those that have one of these in them.
func (a *Access) leadAbroad(id spiffe.ID, roles []string, origin string) {
	service, faces := id.String(), []compile.Face{{ID: id}}
	a.t.Services[service] = compile.Service{IDs: []spiffe.ID{id}, Hosts: []string{origin}, Published: true}
	for _, role := range roles {
		was := len(a.chains[service])
		for _, in := range a.t.Roles[role].Roles {
			if slices.Contains(roles, in) {
				a.chains[service] = append(a.chains[service], Chain{Role: role, In: in, faces: faces})
			}
		}
		if len(a.chains[service]) == was {
			a.chains[service] = append(a.chains[service], Chain{Role: role, faces: faces})
		}
		a.abroad[role] = append(a.abroad[role], service)
	}
}

// stranger reports whether neither side is of this cluster, which decides nothing of it.
func (a *Access) stranger(p Principal, service string) bool {
	return a.foreign[service] != "" && p.foreign
}

// Reach are the services that p reaches, sorted, wherever p may act.
func (a *Access) Reach(p Principal) []string {
	return slices.Sorted(maps.Keys(a.reach(p, p.Roles)))
}

// reach is what roles lead p to, by service.
func (a *Access) reach(p Principal, roles []string) map[string][]compile.Face {
	reach := map[string][]compile.Face{}
	for _, r := range roles {
		for s, ids := range a.t.Leads(r) {
			if len(reach[s]) == 0 {
				reach[s] = ids
			} else {
				reach[s] = append(slices.Clip(reach[s]), ids...)
			}
		}
		if !p.foreign {
			for _, s := range a.abroad[r] {
				reach[s] = a.t.Services[s].Faces()
			}
		}
	}
	return reach
}

// Principals are all of them, sorted by ID.
func (a *Access) Principals() []Principal {
	return slices.SortedFunc(maps.Values(a.principals), func(p, q Principal) int { return compareID(p.ID, q.ID) })
}

// held are the chains to a service, or to one host's own, that start with a role of p.
func (a *Access) held(p Principal, service string) []Chain {
	if a.stranger(p, service) {
		return []Chain{}
	}
	return p.held(a.to(service))
}
