package laws

import (
	"maps"
	"slices"
)

// parts adds parts of services on some hosts to roles and groups, and exceptions to roles.
func (g generator) parts(c *cluster, hosts, roles []string) {
	for _, name := range sorted(c.Services) {
		s := c.Services[name]
		if s.Hosts == nil || s.Scope == "" {
			continue
		}
		on := s.Hosts[g.IntN(len(s.Hosts))]
		part := name + "@" + g.places(c, on)
		role := c.Roles[roles[g.IntN(len(roles))]]
		switch g.IntN(3) {
		case 0:
			if len(role.Services) > 1 && s.Visibility != "public" { // an ingress may reach it by this role only
				role.Services = slices.DeleteFunc(role.Services, func(n string) bool { return n == name })
			}
			role.Services = append(role.Services, part)
		case 1:
			c.ServiceGroups["g9x"] = []string{part}
			role.ServiceGroups = append(role.ServiceGroups, "g9x")
		case 2:
			g.except(c, role, part)
		}
	}
	if services := sorted(c.Services); g.IntN(2) == 0 {
		g.except(c, c.Roles[roles[g.IntN(len(roles))]], services[g.IntN(len(services))])
	}
}

// places returns a name of a host: its own, or that of a group or tag.
func (g generator) places(c *cluster, host string) string {
	h := c.Hosts[host]
	names := append([]string{host}, c.all(h).Tags...)
	if h.Group != "" {
		names = append(names, h.Group, h.Group[:len("i0x")])
	}
	return names[g.IntN(len(names))]
}

// except adds an exception, unless the role would then reach nothing, or no ingress a public
// service.
func (g generator) except(c *cluster, role *role, name string) {
	role.Except = append(role.Except, name)
	for held := range c.Roles {
		if held != "node" && held != "operator" && !c.reaches(held) {
			role.Except = nil
		}
	}
	for name, s := range c.Services {
		if s.Visibility == "public" && len(c.ingress(name)) == 0 {
			role.Except = nil
		}
	}
}

func (c *cluster) reaches(held string) bool {
	for name, s := range c.Services {
		hosts := s.on()
		if s.Replicas != nil {
			hosts = []string{sorted(c.Hosts)[0]} // the names are alike
		}
		for _, h := range hosts {
			if slices.ContainsFunc(s.faces(name, h), func(id string) bool { return c.may(held, name, h, id) }) {
				return true
			}
		}
	}
	return false
}

// named reports whether a role names a service or part of it, ignoring exceptions.
func (c *cluster) named(held, wanted string) bool {
	d := *c
	d.Roles = map[string]*role{}
	for name, r := range c.Roles {
		all := *r
		all.Except = nil
		d.Roles[name] = &all
	}
	s := c.Services[wanted]
	return slices.ContainsFunc(s.on(), func(h string) bool {
		return slices.ContainsFunc(s.faces(wanted, h), func(id string) bool { return d.may(held, wanted, h, id) })
	})
}

func sorted[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }
