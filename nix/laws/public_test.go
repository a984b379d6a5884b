package laws

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
)

// publish makes services public if an ingress reaches them, most of them with a public name.
func (g generator) publish(c *cluster) {
	for _, name := range slices.Sorted(maps.Keys(c.Services)) {
		s := c.Services[name]
		if s.Visibility != "" || len(c.ingress(name)) == 0 || g.IntN(4) == 0 {
			continue
		}
		s.Visibility = "public"
		if s.Scope != "node" && g.IntN(4) > 0 {
			if s.Protocol != "udp" {
				s.TLSName = strings.Replace(name, "s", "n", 1) + ".example.org"
			}
		}
	}
}

// certify has public names certified, one by one or with a wildcard, if all public services have a
// name. The cluster's own CA issues the certificates, because an external one would be called.
func (g generator) certify(c *cluster) {
	for _, s := range c.Services {
		if s.Visibility == "public" && s.TLSName == "" {
			return
		}
	}
	p := provider{Hosts: c.Providers["secret"].Hosts, Internal: []string{"example.org"}}
	if g.IntN(3) == 0 {
		p.Wild = p.Internal
	}
	c.Providers["tls"] = p
	for _, name := range slices.Sorted(maps.Keys(c.Services)) {
		c.Services[name].GRPC = c.Services[name].TLSName != "" && g.IntN(3) == 0
	}
}

// certified reports whether a host has certificates for public names.
func (c *cluster) certified(host string) bool {
	for name, s := range c.Services {
		if s.TLSName != "" && slices.Contains(c.serves(name), host) {
			return true
		}
	}
	return len(c.namesAbroad(host)) > 0
}

// certifiedBoth reports whether two hosts have the certificate of one public name, and share its
// key.
func (c *cluster) certifiedBoth(one, other string) bool {
	for name, s := range c.Services {
		if on := c.serves(name); s.TLSName != "" && slices.Contains(on, one) && slices.Contains(on, other) {
			return true
		}
	}
	return slices.ContainsFunc(c.namesAbroad(one), func(name string) bool { return slices.Contains(c.namesAbroad(other), name) })
}

// withdraw makes services without an ingress internal again, because they would be a fault.
func (c *cluster) withdraw() *cluster {
	c.withdrawAbroad()
	for name, s := range c.Services {
		if s.Visibility == "public" && len(c.ingress(name)) == 0 {
			s.private(c)
		}
		if s.Visibility == "public" {
			c.withdrawEdge(name)
		}
	}
	return c
}

// ingress returns the hosts with an ingress that reach a service.
func (c *cluster) ingress(service string) (hosts []string) {
	for _, p := range c.principals() {
		reaches := func(role string) bool {
			s := c.Services[service]
			return slices.ContainsFunc(s.on(), func(h string) bool {
				ids := s.ids(service, h)
				known := ids[len(ids)-1] // the ID with the public name
				if s.Ports != nil {
					known += ":http"
				}
				return c.may(role, service, h, known)
			})
		}
		if slices.Contains(c.all(c.Hosts[p.host]).Capabilities, "ingress") && slices.ContainsFunc(p.roles, reaches) {
			hosts = append(hosts, p.host)
		}
	}
	return hosts
}

// TestIngressIsTold checks that every ingress is told the public names of the services that it
// reaches.
func TestIngressIsTold(t *testing.T) {
	total := 0
	for _, s := range samples(t) {
		for c, docs := range map[*cluster]compiled{s.c: s.is, s.grown: s.more, s.narrower: s.less} {
			manifests := docs.manifests(t)
			for name, service := range c.Services {
				if service.TLSName == "" {
					continue
				}
				for _, host := range c.serves(name) {
					told := slices.ContainsFunc(manifests[host].Forwarder.Reach, func(r document.Reachable) bool {
						return r.ID.Name() == name && r.TLSName == service.TLSName && slices.Equal(r.TLSAliases, service.TLSAliases)
					})
					if !told {
						t.Errorf("%s: %s is not told of %s", s, host, service.TLSName)
					}
					total++
				}
			}
		}
	}
	if total < len(samples(t)) {
		t.Errorf("only %d names in all", total)
	}
}

// aliases gives some services aliases, inside and public. For s1x they are as1x and *.s1x.
func (c *cluster) aliases() {
	g := rand.New(rand.NewPCG(uint64(len(c.Services)), uint64(len(c.Hosts))))
	for _, name := range slices.Sorted(maps.Keys(c.Services)) {
		s := c.Services[name]
		if s.Visibility != "host" && s.Scope != "node" && (s.Scope == "both" || g.IntN(3) == 0) {
			s.Aliases = [][]string{{"*." + name}, {"a" + name}, {"*." + name, "a" + name}}[g.IntN(3)]
		}
		if s.TLSName != "" && g.IntN(2) == 0 {
			s.TLSAliases = [][]string{{"*." + s.TLSName}, {"also-" + s.TLSName}}[g.IntN(2)]
		}
	}
}

// TestAliasesLead checks that the callers of the identity that all hosts of a service share have
// its other names, and that these lead nowhere else.
func TestAliasesLead(t *testing.T) {
	total := 0
	for _, s := range samples(t) {
		for c, docs := range map[*cluster]compiled{s.c: s.is, s.grown: s.more, s.narrower: s.less} {
			for host, m := range docs.manifests(t) {
				aliases := m.Aliases()
				for _, r := range m.Forwarder.Reach {
					service := c.Services[r.ID.Name()]
					if service == nil || r.ID.Node() != "" || r.ID.TrustDomain() != m.TrustDomain {
						if len(r.Aliases) > 0 {
							t.Errorf("%s: %s has aliases of %s", s, host, r.ID)
						}
						continue
					}
					for _, alias := range service.Aliases {
						d, ok := aliases.Resolve(strings.Replace(alias, "*", "any", 1) + "." + m.TrustDomain + ".rete")
						if !ok || d.ID() != r.ID {
							t.Errorf("%s: on %s, %s leads to %v, want %s", s, host, alias, d.ID(), r.ID)
						}
						total++
					}
				}
			}
		}
	}
	if total < len(samples(t)) {
		t.Errorf("only %d aliases in all", total)
	}
}

// cache lets every host, or the operators, reach the binary cache of some clusters.
func (c *cluster) cache() {
	which := len(c.Hosts) + len(c.Services)
	if which%3 != 0 {
		return
	}
	c.ServiceGroups[spiffe.CacheGroup], c.ServiceGroups[spiffe.CacheGroup+"-write"] = []string{}, []string{}
	leads := c.Roles[[]string{"node", "operator"}[which%2]]
	leads.ServiceGroups = append(leads.ServiceGroups, spiffe.CacheGroup)
}
