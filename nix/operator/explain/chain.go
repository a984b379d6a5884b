package explain

import (
	"cmp"
	"slices"
	"strings"

	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/nix/operator/compile"
)

// Chain is one reason why holders of a role reach a service. The role names the service or, if
// Group is set, a service group that contains the service.
type Chain struct {
	Team  string `json:"team,omitempty"` // team through which a user has the role
	Role  string `json:"role"`
	In    string `json:"in,omitempty"` // role within Role that leads to the service
	Group string `json:"group,omitempty"`
	// Part is the part of the service that the role names, such as "shell@eu". It is empty if the
	// role names the whole service.
	Part string `json:"part,omitempty"`
	// Except lists the exceptions in the chain's roles that exclude parts of the service, sorted by
	// name.
	Except []Exception `json:"except,omitempty"`

	// Until is the time at which the principal's role ends. It is zero if the role never ends.
	Until unixtime.Time `json:"until,omitzero"`

	faces []compile.Face // faces to which it leads
}

// Exception is a service, or a part of one, that holders of a role do not reach although the role
// would otherwise include it.
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

// ending returns the end of a role as text. If the role has no end, the text is empty.
func ending(t unixtime.Time) string {
	if t.IsZero() {
		return ""
	}
	return " until " + t.UTC().Format("2006-01-02 15:04 MST")
}

// but returns the exceptions of the chain as text. If there are none, the text is empty.
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

// lead adds the chains that extend the chain c by the names in a role.
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

// add adds the chain that ends with a name in a role or group. It leaves out the faces that the
// exceptions of the chain exclude.
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
	// A part that one role excludes may be reached through another one.
	c.Except = slices.DeleteFunc(named, func(e Exception) bool {
		return !slices.ContainsFunc(faces, func(f compile.Face) bool { return a.takes(e, f) && !slices.Contains(c.faces, f) })
	})
	if len(c.faces) == 0 && len(c.Except) > 0 {
		a.excepted[service] = append(a.excepted[service], c)
		return
	}
	a.chains[service] = append(a.chains[service], c)
}

// exceptions returns the exceptions in the roles of a chain that remove at least one of the given
// faces.
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

// takes reports whether an exception removes a face. The exception of one instance also removes the
// face that all instances of a service share, because this face leads to each instance. Exceptions
// do not apply to services of other clusters.
func (a *Access) takes(e Exception, f compile.Face) bool {
	service, faces := a.t.Named(e.Name)
	if a.foreign[f.ID.String()] != "" {
		return false
	}
	return slices.Contains(faces, f) || service == f.ID.Name() && f.ID.Node() == "" &&
		slices.ContainsFunc(faces, func(x compile.Face) bool { return x.Port == f.Port })
}

// target returns the service to which a name refers, and a function that selects the faces of the
// service to which it refers. The name is that of a service, of the instance of one host
// ("shell@forge"), or of a port of either ("wiki:metrics").
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

// faces returns the faces to which a name refers.
func (a *Access) faces(name string) []compile.Face {
	service, at := a.target(name)
	return slices.DeleteFunc(a.t.Services[service].Faces(), func(f compile.Face) bool { return !at(f) })
}

// reached returns the faces of a name to which the chains lead. It returns nil if they lead to all
// of them.
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

// to returns the chains that lead to a service, or to the instance of one host.
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

// shut returns the chains that would lead to a name if their roles had no exceptions.
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

// held returns those of the given chains that begin with a role of the principal.
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
