package explain

import (
	"cmp"
	"maps"
	"slices"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/nix/operator/compile"
)

// Remedy is a change of the topology that would give a principal the access that it lacks.
type Remedy struct {
	Place string `json:"place"` // such as "users.alice.roles"
	Value string `json:"value"` // value to add at Place, or to set for visibility
	// Part lists the requested faces that the change opens, sorted. It is empty if the change opens
	// all requested faces.
	Part []compile.Face `json:"part,omitempty"`
	// Opens lists the access that the change opens beyond what was requested, sorted.
	Opens []Pair `json:"opens"`

	besides int // number of faces in Opens
}

// Pair is a principal and a service that it reaches.
type Pair struct {
	Principal spiffe.ID `json:"principal"`
	Service   string    `json:"service"` // service, or part of it as named in roles: "shell@forge", "wiki:http"
}

// right is the access of a principal to one face of a service. It does not include access to the
// other faces.
type right struct {
	principal spiffe.ID
	service   string
	face      compile.Face
}

// rights returns the rights of a principal to faces of a service.
func rights(id spiffe.ID, service string, faces []compile.Face) (all []right) {
	for _, f := range faces {
		all = append(all, right{id, service, f})
	}
	return all
}

func compareRight(r, o right) int {
	return cmp.Or(compareID(r.principal, o.principal), cmp.Compare(r.service, o.service), compareFace(r.face, o.face))
}

func compareFace(f, g compile.Face) int {
	return cmp.Or(compareID(f.ID, g.ID), cmp.Compare(f.Port, g.Port))
}

// remedies returns the single changes that give a principal a chain to a service. A change is an
// additional role, or the addition of the service to a role or group that the principal has.
// Changes that open everything requested come first.
func (a *Access) remedies(p Principal, service string) []Remedy {
	remedies := map[[2]string]Remedy{}
	add := func(place, value string, opened []right) {
		if slices.ContainsFunc(opened, func(r right) bool { return r.principal == p.ID && a.asks(service, r) }) {
			remedies[[2]string{place, value}] = a.remedy(place, value, opened, p, service)
		}
	}
	for _, c := range a.to(service) {
		// All nodes have the role node, and no foreign principal may have the role operator.
		if c.Role != "node" && !(p.foreign && c.Role == "operator") {
			add(p.place, c.Role, a.given(p.place, c.Role))
		}
	}
	for _, role := range p.Roles {
		if place := a.foreign[service]; place != "" {
			add(place, role, a.let(role, service))
			continue
		}
		add("roles."+role+".services", service, a.let(role, service))
		for _, g := range a.t.Roles[role].ServiceGroups {
			add("serviceGroups."+g, service, a.through(g, service))
		}
	}
	return slices.SortedFunc(maps.Values(remedies), func(r, o Remedy) int {
		return cmp.Or(cmp.Compare(min(len(r.Part), 1), min(len(o.Part), 1)), cmp.Compare(r.besides, o.besides),
			cmp.Compare(r.Place, o.Place), cmp.Compare(r.Value, o.Value))
	})
}

// asks reports whether a right is part of the access that was requested by name.
func (a *Access) asks(name string, r right) bool {
	service, at := a.target(name)
	return r.service == service && at(r.face)
}

// remedy returns a change as a Remedy. The principal requested the service, and the change opens
// the given rights.
func (a *Access) remedy(place, value string, opened []right, p Principal, service string) Remedy {
	slices.SortFunc(opened, compareRight)
	r := Remedy{Place: place, Value: value, Opens: []Pair{}}
	var besides []right
	for _, o := range slices.Compact(opened) {
		if o.principal == p.ID && a.asks(service, o) {
			r.Part = append(r.Part, o.face)
		} else {
			besides = append(besides, o)
		}
	}
	if len(r.Part) == len(a.faces(service)) {
		r.Part = nil
	}
	r.besides = len(besides)
	for len(besides) > 0 {
		first := besides[0]
		n := slices.IndexFunc(besides, func(o right) bool { return o.principal != first.principal || o.service != first.service })
		if n < 0 {
			n = len(besides)
		}
		r.Opens = append(r.Opens, a.pairs(besides[:n])...)
		besides = besides[n:]
	}
	return r
}

// pairs converts rights to pairs of principal and service. Rights to some parts of a service are
// named by these parts.
func (a *Access) pairs(all []right) (pairs []Pair) {
	if len(all) == len(a.faces(all[0].service)) {
		return []Pair{{all[0].principal, all[0].service}}
	}
	for _, r := range all {
		name := r.service
		if host := r.face.ID.Node(); host != "" {
			name += "@" + host
		}
		if r.face.Port != "" {
			name += ":" + r.face.Port
		}
		pairs = append(pairs, Pair{r.principal, name})
	}
	return pairs
}

// given returns the rights that an additional role opens. The role is added at a place of the
// topology, and so for all principals whose roles are declared there.
func (a *Access) given(place, role string) (opened []right) {
	for _, p := range a.principals {
		if p.place != place || len(p.Hosts) == 0 {
			continue
		}
		had := a.reach(p, p.Roles)
		for s, faces := range a.reach(p, []string{role}) {
			faces = slices.DeleteFunc(slices.Clone(faces), func(f compile.Face) bool { return slices.Contains(had[s], f) })
			opened = append(opened, rights(p.ID, s, faces)...)
		}
	}
	return opened
}

// let returns the rights that open if a role names the service. They belong to the holders of the
// role and of the roles that contain it. Rights that these roles exclude by exceptions are left
// out.
func (a *Access) let(role, service string) (opened []right) {
	of, _ := a.target(service)
	for name, r := range a.t.Roles {
		if name != role && !slices.Contains(r.Roles, role) {
			continue
		}
		faces := slices.DeleteFunc(a.faces(service), func(f compile.Face) bool { return a.excepts(name, f) || a.excepts(role, f) })
		for _, id := range a.holders[name] {
			p := a.principals[id]
			if len(p.Hosts) == 0 || a.stranger(p, service) {
				continue
			}
			held := a.held(p, service)
			missing := slices.DeleteFunc(slices.Clone(faces), func(f compile.Face) bool {
				return slices.ContainsFunc(held, func(c Chain) bool { return slices.Contains(c.faces, f) })
			})
			opened = append(opened, rights(id, of, missing)...)
		}
	}
	return opened
}

// through returns the rights that open if a group contains the service, through the roles that name
// the group.
func (a *Access) through(group, service string) (opened []right) {
	for name, role := range a.t.Roles {
		if _, groups := role.Names(); slices.Contains(groups, group) {
			opened = append(opened, a.let(name, service)...)
		}
	}
	return opened
}

// excepts reports whether a role excludes a face of a service of this cluster.
func (a *Access) excepts(role string, f compile.Face) bool {
	return slices.ContainsFunc(a.t.Roles[role].Except, func(name string) bool { return a.takes(Exception{role, name}, f) })
}
