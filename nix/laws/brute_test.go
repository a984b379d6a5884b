package laws

import (
	"slices"
	"strings"

	"github.com/florete/florete/internal/spiffe"
)

// pair is a principal and a service that it reaches, by their IDs.
type pair struct{ who, what string }

// principal is an identity that acts on a host, with its roles.
type principal struct {
	id, host string
	roles    []string
}

// on returns the hosts of a service.
func (s *service) on() []string {
	switch {
	case s.Host != "":
		return []string{s.Host}
	case s.Replicas != nil:
		return s.placed
	}
	return s.Hosts
}

// ids returns the IDs of a service on a host.
func (s *service) ids(name, host string) []string {
	own, shared := "spiffe://laws.flor/service/"+host+"/"+name, "spiffe://laws.flor/service/"+name
	switch s.Scope {
	case "node":
		return []string{own}
	case "both":
		return []string{own, shared}
	}
	return []string{shared}
}

// signsOn reports whether a service on the host needs OIDC.
func (c *cluster) signsOn(host string) bool {
	for _, s := range c.Services {
		if s.SSO != nil && slices.Contains(s.on(), host) {
			return true
		}
	}
	return false
}

// workloadsOn reports whether a service on the host uses the Workload API.
func (c *cluster) workloadsOn(host string) bool {
	for _, s := range c.Services {
		if s.Workload && slices.Contains(s.on(), host) {
			return true
		}
	}
	return false
}

// filesOn reports whether a service on the host needs a file.
func (c *cluster) filesOn(host string) bool {
	for _, s := range c.Services {
		if s.Files != nil && slices.Contains(s.on(), host) {
			return true
		}
	}
	return false
}

// principals returns the principals of all hosts, once for each host they act on.
func (c *cluster) principals() (all []principal) {
	for name, h := range c.Hosts {
		has := c.all(h)
		held := append([]string{"node"}, has.Roles...)
		for _, o := range c.outsideOn(name) {
			held = append(held, outsideRole+o)
		}
		all = append(all, principal{"spiffe://laws.flor/node/" + name, name, held})
		for _, u := range has.Users {
			held := []string{}
			for r := range c.Roles {
				if c.has(u, r) {
					held = append(held, r)
				}
			}
			all = append(all, principal{"spiffe://laws.flor/user/" + u, name, held})
		}
	}
	for name, s := range c.Services {
		for _, h := range s.on() {
			for _, id := range s.ids(name, h) {
				all = append(all, principal{id, h, s.held()})
			}
		}
	}
	return all
}

// may reports whether a role permits an ID of a service on a host, following the definition of the
// language.
func (c *cluster) may(held, wanted, host, id string) bool {
	if c.Services[wanted].Visibility == "host" || held == "node" && wanted == spiffe.ControlService {
		return false
	}
	r := c.role(held)
	for _, name := range r.Except {
		if c.means(name, wanted, host, id) || c.shares(name, wanted, id) {
			return false
		}
	}
	names := slices.Clone(r.Services)
	for _, g := range r.ServiceGroups {
		names = append(names, c.ServiceGroups[g]...)
	}
	return slices.ContainsFunc(names, func(name string) bool { return c.means(name, wanted, host, id) }) ||
		slices.ContainsFunc(r.Roles, func(in string) bool { return c.may(in, wanted, host, id) })
}

// means reports whether a name in a role, "s1x", "s1x@h2x" or "s1x:http", includes an ID of a
// service on a host.
func (c *cluster) means(name, wanted, host, id string) bool {
	name, port := cutPort(name)
	if bare, at := cutPort(id); port == "" || port == at {
		id = bare
	} else {
		return false
	}
	base, at, part := strings.Cut(name, "@")
	if base != wanted || !part {
		return base == wanted
	}
	h := c.Hosts[host]
	there := host == at || h.Group == at || strings.HasPrefix(h.Group, at+"/") || slices.Contains(c.all(h).Tags, at)
	return there && id == "spiffe://laws.flor/service/"+host+"/"+wanted
}

// shares reports whether an ID is the one that all hosts of a service share, when a name is a part
// of the service: the shared ID leads to each part.
func (c *cluster) shares(name, wanted, id string) bool {
	name, port := cutPort(name)
	id, at := cutPort(id)
	if port != "" && port != at {
		return false
	}
	base, _, part := strings.Cut(name, "@")
	return part && base == wanted && id == "spiffe://laws.flor/service/"+wanted
}

// brute tries every principal with every service.
func (c *cluster) brute() map[pair]bool {
	pairs := map[pair]bool{}
	for _, p := range append(c.principals(), c.foreigners()...) {
		for name, s := range c.Services {
			for _, held := range p.roles {
				for _, h := range s.on() {
					for _, id := range s.faces(name, h) {
						if c.may(held, name, h, id) {
							pairs[pair{p.id, id}] = true
						}
					}
				}
			}
		}
	}
	return pairs
}

// edges returns the pairs of hosts between which a principal reaches a service.
func (c *cluster) edges() map[pair]bool {
	edges := map[pair]bool{}
	reach := c.brute()
	for _, p := range c.principals() {
		for name, s := range c.Services {
			for _, h := range s.on() {
				if slices.ContainsFunc(s.faces(name, h), func(id string) bool { return reach[pair{p.id, id}] }) {
					edges[pair{p.host, h}] = true
					edges[pair{h, p.host}] = true
				}
			}
		}
	}
	return edges
}
