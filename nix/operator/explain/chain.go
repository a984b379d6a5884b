package explain

import (
	"cmp"
	"slices"
	"strings"

	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/nix/operator/compile"
)

// Chain is one way to a service: a role, and the group through which it reaches
// the service unless the role names it itself.
type Chain struct {
	Team  string `json:"team,omitempty"` // by which a user has the role
	Role  string `json:"role"`
	In    string `json:"in,omitempty"` // the role in it that leads there
	Group string `json:"group,omitempty"`
	// Part is what is named where that is not all of the service: "shell@eu".
	Part string `json:"part,omitempty"`
	// Except are the exceptions of roles on the way that take something out of it, sorted by name.
	Except []Exception `json:"except,omitempty"`

	// Until is when a principal's role ends; zero for never.
	Until unixtime.Time `json:"until,omitzero"`

	faces []compile.Face // that it leads to
}

// Exception is what a role does not lead to, whatever else it has.
type Exception struct {
	Role string `json:"role"`
	Name string `json:"name"` // "shell" or "shell@eu"
}

func (c Chain) String() string {
	var b strings.Builder
	if c.Team != "" {
		b.WriteString("team " + c.Team + " → ")
	}
	b.WriteString("role " + c.Role + ending(c.Until))
	if c.In != "" {
		b.WriteString(" → role " + c.In)
	}
	if c.Group != "" {
		b.WriteString(" → group " + c.Group)
	}
	if c.Part != "" {
		b.WriteString(" → " + c.Part)
	}
	return b.String()
}

// ending is when a role ends, for people; "" of most.
func ending(t unixtime.Time) string {
	if t.IsZero() {
		return ""
	}
	return " until " + t.UTC().Format("2006-01-02 15:04 MST")
}

// but is what the chain does not lead to although it names it; "" of most.
func (c Chain) but() string {
	var names []string
	for _, e := range c.Except {
		names = append(names, e.Name)
	}
	if names == nil {
		return ""
	}
	return ", except " + strings.Join(slices.Compact(names), ", ")
}

func compareChain(a, b Chain) int {
	return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.In, b.In), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Part, b.Part))
}

// lead adds the chains that go on from c with what a role names itself.
func (a *Access) lead(c Chain, r compile.Role) {
	services, groups := r.Names()
	for _, s := range services {
		a.add(c, s)
	}
	for _, g := range groups {
		c.Group = g
		for _, s := range a.t.ServiceGroups[g] {
			a.add(c, s)
		}
	}
}

// add adds the chain that ends with what a role or group names, or what exceptions leave of it.
func (a *Access) add(c Chain, name string) {
	service, faces := a.t.Named(name)
	c.faces = faces
	if service != name {
		c.Part = name
	}
	if a.t.Roles[c.Role].Reach == nil || !a.t.Services[service].Published {
		a.chains[service] = append(a.chains[service], c)
		return
	}
	named := a.exceptions(c, faces)
	left := a.t.Leads(c.Role)[service]
	ends := slices.DeleteFunc(slices.Clone(named), func(e Exception) bool { return e.Role != c.Role && e.Role != c.In })
	c.faces = slices.DeleteFunc(slices.Clone(faces), func(f compile.Face) bool {
		return !slices.Contains(left, f) || slices.ContainsFunc(ends, func(e Exception) bool { return a.takes(e, f) })
	})
	// What one role on the way excepts, another way may lead to all the same.
	c.Except = slices.DeleteFunc(named, func(e Exception) bool {
		return !slices.ContainsFunc(faces, func(f compile.Face) bool { return a.takes(e, f) && !slices.Contains(c.faces, f) })
	})
	if len(c.faces) == 0 && len(c.Except) > 0 {
		a.excepted[service] = append(a.excepted[service], c)
		return
	}
	a.chains[service] = append(a.chains[service], c)
}

// exceptions are those of the roles on a chain that take away one of what it would lead to.
func (a *Access) exceptions(c Chain, faces []compile.Face) (found []Exception) {
	for _, role := range append([]string{c.Role}, a.t.Roles[c.Role].Roles...) {
		on := role == c.Role || role == c.In || c.In != "" && slices.Contains(a.t.Roles[role].Roles, c.In)
		if !on {
			continue
		}
		for _, name := range a.t.Roles[role].Except {
			if e := (Exception{role, name}); slices.ContainsFunc(faces, func(f compile.Face) bool { return a.takes(e, f) }) {
				found = append(found, e)
			}
		}
	}
	slices.SortFunc(found, func(e, f Exception) int {
		return cmp.Or(cmp.Compare(e.Name, f.Name), cmp.Compare(e.Role, f.Role))
	})
	return found
}

// takes is whether an exception is from one of a service's faces. What all instances share leads to each.
// What another cluster has is excepted by nothing.
func (a *Access) takes(e Exception, f compile.Face) bool {
	service, faces := a.t.Named(e.Name)
	if a.foreign[f.ID.String()] != "" {
		return false
	}
	return slices.Contains(faces, f) || service == f.ID.Name() && f.ID.Node() == "" &&
		slices.ContainsFunc(faces, func(x compile.Face) bool { return x.Port == f.Port })
}

// target is what somebody names: a service, one host's own, "shell@forge", or a port of these,
// "wiki:metrics".
func (a *Access) target(name string) (service string, at func(compile.Face) bool) {
	if a.foreign[name] != "" {
		return name, func(compile.Face) bool { return true }
	}
	rest, port, _ := strings.Cut(name, ":")
	service, host, one := strings.Cut(rest, "@")
	return service, func(f compile.Face) bool {
		return (!one || f.ID.Node() == host) && (port == "" || f.Port == port)
	}
}

// faces are those of what somebody names.
func (a *Access) faces(name string) []compile.Face {
	service, at := a.target(name)
	return slices.DeleteFunc(a.t.Services[service].Faces(), func(f compile.Face) bool { return !at(f) })
}

// reached is what some chains lead to of what somebody names, nil for all of it.
func (a *Access) reached(chains []Chain, name string) (faces []compile.Face) {
	all := a.faces(name)
	for _, f := range all {
		if slices.ContainsFunc(chains, func(c Chain) bool { return slices.Contains(c.faces, f) }) {
			faces = append(faces, f)
		}
	}
	if len(faces) == len(all) {
		return nil
	}
	slices.SortFunc(faces, compareFace)
	return faces
}

// to are the chains that lead to a service, or to one host's own.
func (a *Access) to(name string) []Chain {
	service, at := a.target(name)
	if service == name {
		return a.chains[service]
	}
	chains := slices.DeleteFunc(slices.Clone(a.chains[service]), func(c Chain) bool { return !slices.ContainsFunc(c.faces, at) })
	for i := range chains {
		chains[i].Except = nil
	}
	return chains
}

// shut are those that would lead there, but for the exceptions that they have.
func (a *Access) shut(name string) (shut []Chain) {
	service, at := a.target(name)
	for _, c := range append(slices.Clone(a.chains[service]), a.excepted[service]...) {
		_, named := a.t.Named(cmp.Or(c.Part, service))
		meant := slices.DeleteFunc(slices.Clone(named), func(f compile.Face) bool { return !at(f) })
		c.Except = slices.DeleteFunc(slices.Clone(c.Except), func(e Exception) bool {
			return !slices.ContainsFunc(meant, func(f compile.Face) bool { return a.takes(e, f) })
		})
		if !slices.ContainsFunc(c.faces, at) && len(c.Except) > 0 {
			shut = append(shut, c)
		}
	}
	slices.SortFunc(shut, compareChain)
	return shut
}

// held are the chains that start with a role of p.
func (p Principal) held(chains []Chain) []Chain {
	held := []Chain{}
	for _, c := range chains {
		if slices.Contains(p.Roles, c.Role) {
			c.Team = p.teams[c.Role]
			c.Until = p.until[c.Role]
			held = append(held, c)
		}
	}
	return held
}
