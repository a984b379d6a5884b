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

// Access tells which principals reach which services of a topology, and why.
type Access struct {
	t          compile.Topology
	principals map[spiffe.ID]Principal
	holders    map[string][]spiffe.ID // principals with a role, sorted
	chains     map[string][]Chain     // chains to a service, published or not, sorted
	foreign    map[string]string      // place of the roles, by service of another cluster
	abroad     map[string][]string    // those services to which a role leads
	excepted   map[string][]Chain     // chains to a service that are removed by exceptions of their roles
}

// Principal is somebody or something that can have access to services: a node, a service or a user.
// Its roles determine which services it reaches.
type Principal struct {
	ID    spiffe.ID
	Roles []string                 // sorted
	Hosts []string                 // hosts that act as the principal, sorted; only a user may have none; for a foreign principal its trust domain or cluster
	place string                   // place of its roles in the topology
	teams map[string]string        // team through which it has a role
	until map[string]unixtime.Time // end of a role

	foreign bool     // belongs to another cluster
	ended   []string // roles that have ended, sorted
}

// New returns an Access for questions about a topology. It takes no account of time, so all roles
// count, even roles that have ended.
func New(t compile.Topology) *Access { return At(t, time.Time{}) }

// At returns an Access for questions about a topology at the time now. Roles that end at or before
// that time give no access. The topology can contain such roles, because the compiler removes only
// those that ended before the commit was made.
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
		for _, team := range slices.Backward(u.Teams) { // the nearest team counts
			for _, role := range t.Teams[team].Roles {
				teams[role] = team
			}
			for role, end := range t.Teams[team].Until {
				if !u.Until[role].IsZero() && !end.Before(u.Until[role].Time) { // the role of a member with an end ends with the membership
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

// leadAbroad adds a service of another cluster, and the chains of roles that lead to it. These
// begin with the roles that the service names, or with roles that contain them.
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

// stranger reports whether both the principal and the service belong to other clusters. This
// cluster then does not decide about the access.
func (a *Access) stranger(p Principal, service string) bool {
	return a.foreign[service] != "" && p.foreign
}

// Reach returns the names of all services that a principal reaches from at least one of its hosts,
// sorted.
func (a *Access) Reach(p Principal) []string {
	return slices.Sorted(maps.Keys(a.reach(p, p.Roles)))
}

// reach returns the services and faces that the principal reaches through the given roles.
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

// Principals returns all principals in the topology, sorted by ID.
func (a *Access) Principals() []Principal {
	return slices.SortedFunc(maps.Values(a.principals), func(p, q Principal) int { return compareID(p.ID, q.ID) })
}

// held returns the chains to a service that begin with a role of the principal. The service may
// also be the instance of one host.
func (a *Access) held(p Principal, service string) []Chain {
	if a.stranger(p, service) {
		return []Chain{}
	}
	return p.held(a.to(service))
}
