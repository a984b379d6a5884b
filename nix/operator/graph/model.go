package graph

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/nix/operator/compile"
)

// Cluster is a cluster that is drawn as a graph, or a part of one. Around returns such a part.
type Cluster struct {
	compile.Topology
	// Needs lists the kinds of need that a host requests from a provider. The first key is the
	// host, and the second key is the provider.
	Needs map[string]map[string][]string
	// around is the host for which the others are drawn, empty for all.
	around string
	// nodes is the number of hosts, drawn or not.
	nodes int
	// drawn contains the services to draw for each role, if not all.
	drawn map[string][]string
}

// New returns the whole cluster of a snapshot for drawing.
func New(s compile.Snapshot) (Cluster, error) {
	c := Cluster{Topology: s.Topology, Needs: map[string]map[string][]string{}, nodes: len(s.Topology.Hosts)}
	for host, docs := range s.Documents {
		d, err := docs[document.DocManifest].Open()
		if err != nil {
			return c, fmt.Errorf("host %s: %w", host, err)
		}
		m := d.Manifest()
		c.Needs[host] = map[string][]string{}
		for _, n := range m.Needs {
			for _, p := range n.Providers {
				if !slices.Contains(c.Needs[host][p], n.Kind) {
					c.Needs[host][p] = append(c.Needs[host][p], n.Kind)
				}
			}
		}
		for _, kinds := range c.Needs[host] {
			slices.Sort(kinds)
		}
	}
	if len(c.Federated)+len(c.Clusters) > 0 {
		c = c.withForeign()
	}
	return c, nil
}

// role is a role that a principal holds or that the cluster defines.
type role struct {
	name     string
	groups   []string
	services []string                  // published services that it reaches, sorted
	leads    map[string][]compile.Face // faces of these services
	nodes    []string                  // hosts whose node holds it, sorted; empty if every node does
	users    []string
	by       []string // services that hold it
	every    bool     // whether every node holds it
}

// leadsTo reports whether the role reaches a service on one of its hosts.
func (r *role) leadsTo(service, host string) bool {
	return slices.ContainsFunc(r.leads[service], func(f compile.Face) bool { return on(f, host) })
}

func (c Cluster) roles() []*role {
	holders := map[string]*role{}
	for name, r := range c.Roles {
		leads := c.Leads(name)
		holders[name] = &role{name: name, groups: r.ServiceGroups, services: slices.Sorted(maps.Keys(leads)), leads: leads}
		if c.drawn != nil {
			holders[name].services = c.drawn[name]
		}
	}
	of := func(names []string) (held []*role) {
		for _, n := range names {
			if holders[n] != nil {
				held = append(held, holders[n])
			}
		}
		return held
	}
	for name, h := range c.Hosts {
		for _, r := range of(h.Roles) {
			r.nodes = append(r.nodes, name)
		}
	}
	for name, u := range c.Users {
		for _, r := range of(u.Roles) {
			r.users = append(r.users, name)
		}
	}
	for name, s := range c.Services {
		for _, r := range of(s.Roles) {
			r.by = append(r.by, name)
		}
	}
	var all []*role
	for _, r := range holders {
		slices.Sort(r.nodes)
		slices.Sort(r.users)
		slices.Sort(r.by)
		if r.name == "node" || len(r.nodes) == c.nodes && c.nodes > 1 {
			r.nodes, r.every = nil, true
		}
		// The reserved roles exist whether or not they are used.
		reserved := r.name == "node" || r.name == "operator"
		idle := len(r.services) == 0 || !r.every && len(r.nodes)+len(r.users)+len(r.by) == 0
		if !reserved || !idle {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *role) int { return cmp.Compare(a.name, b.name) })
	return all
}

// entered returns the sorted public services that can be reached through a host. If the host is an
// ingress, these are the services that its node, or a service on it, reaches.
func (c Cluster) entered(host string) (services []string) {
	h := c.Hosts[host]
	if !slices.Contains(h.Capabilities, "ingress") {
		return nil
	}
	held := slices.Clone(h.Roles)
	for _, s := range h.Services {
		held = append(held, c.Services[s].Roles...)
	}
	for _, role := range held {
		for service, faces := range c.Leads(role) {
			entrance := func(f compile.Face) bool { return f.Port == compile.Entrance }
			if c.Services[service].Ports == nil || slices.ContainsFunc(faces, entrance) {
				services = append(services, service)
			}
		}
	}
	services = slices.DeleteFunc(services, func(s string) bool { return c.Services[s].Visibility != "public" })
	slices.Sort(services)
	return slices.Compact(services)
}

// Around returns the part of a cluster that concerns one host: the services that its identities
// reach, the principals that reach its services, and its providers. If another host reaches those
// services only through a role that every node holds, it is left out.
func (c Cluster) Around(host string) (Cluster, error) {
	h, ok := c.Hosts[host]
	if !ok {
		return c, compile.NoHost(c.Name, host, slices.Collect(maps.Keys(c.Hosts)))
	}
	hosts, services, users := set(host), set(h.Services...), set(h.Users...)
	held := set(h.Roles...)
	for _, u := range h.Users {
		add(held, c.Users[u].Roles...)
	}
	for _, s := range h.Services {
		add(held, c.Services[s].Roles...)
	}
	part := c
	part.around = host
	part.Needs = map[string]map[string][]string{host: c.Needs[host]}
	part.Roles, part.drawn = map[string]compile.Role{}, map[string][]string{}
	inward := set() // roles that reach this host
	// Services that it reaches or that reach it. A separate service of another host matters only if
	// it is among these.
	other := set()
	for _, r := range c.roles() {
		here := slices.DeleteFunc(kept(r.services, set(h.Services...)), func(s string) bool { return !r.leadsTo(s, host) })
		if len(here) > 0 {
			inward[r.name] = true
			add(users, r.users...)
			add(hosts, r.nodes...)
			add(services, r.by...)
			add(other, r.by...)
		}
		switch {
		case held[r.name]:
			part.drawn[r.name] = r.services
			add(other, r.services...)
		case len(here) > 0:
			part.drawn[r.name] = here
		default:
			continue
		}
		add(services, part.drawn[r.name]...)
		part.Roles[r.name] = c.Roles[r.name]
	}
	alone := func(s string) bool { return c.Services[s].Scope == "node" && !other[s] }
	for s := range services {
		if !alone(s) {
			add(hosts, c.Services[s].Hosts...)
		}
	}
	for u := range users {
		if len(c.Users[u].Hosts) == 0 {
			delete(users, u)
		}
		add(hosts, c.Users[u].Hosts...)
	}
	for p := range c.Needs[host] {
		hosts[p] = true
	}

	// Roles held by others are drawn only if they lead here.
	part.Hosts, part.Services, part.Users = map[string]compile.Host{}, map[string]compile.Service{}, map[string]compile.User{}
	relevant := func(roles []string, own bool) []string {
		if own {
			return roles
		}
		return kept(roles, inward)
	}
	for name := range hosts {
		o := c.Hosts[name]
		o.Services = slices.DeleteFunc(kept(o.Services, services), func(s string) bool { return name != host && alone(s) })
		o.Users, o.Roles = kept(o.Users, users), relevant(o.Roles, name == host)
		part.Hosts[name] = o
	}
	for name := range services {
		s := c.Services[name]
		s.Roles = relevant(s.Roles, slices.Contains(h.Services, name))
		if alone(name) {
			s.Hosts = []string{host}
		}
		part.Services[name] = s
	}
	for name := range users {
		u := c.Users[name]
		u.Roles = relevant(u.Roles, slices.Contains(h.Users, name))
		part.Users[name] = u
	}
	return part, nil
}

func set(names ...string) map[string]bool {
	s := map[string]bool{}
	add(s, names...)
	return s
}

func add(s map[string]bool, names ...string) {
	for _, n := range names {
		s[n] = true
	}
}

func kept(names []string, in map[string]bool) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !in[n] })
}
