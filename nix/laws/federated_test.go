package laws

import (
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/florete/florete"
)

// federated is a foreign trust domain.
type federated struct {
	TrustDomain string             `json:"trustDomain"`
	Endpoint    string             `json:"endpoint"`
	EndpointID  string             `json:"endpointID,omitempty"`
	Bundle      string             `json:"bundle"`
	Identities  map[string]*holder `json:"identities"`

	Services map[string]*foreignService `json:"services,omitempty"`

	Profile       string   `json:"profile,omitempty"`
	EndpointRoots []string `json:"endpointRoots,omitempty"`
}

// foreignService is one of its services, which is reached from here.
type foreignService struct {
	Address  []string `json:"address"`
	Port     int      `json:"port"`
	Protocol string   `json:"protocol,omitempty"`
	Roles    []string `json:"roles,omitempty"`
}

// blueBundle is that of blue.example.
var blueBundle = sync.OnceValue(func() string {
	b := must(os.ReadFile("../../tests/golden/compiler/federation/blue.bundle.json"))
	return strings.Join(strings.Fields(string(b)), "")
})

func newFederated() *federated {
	return &federated{
		TrustDomain: "blue.example", Endpoint: "https://forge.blue.example:4605/federation/bundle", EndpointID: "spiffe://blue.example/bundles",
		Bundle: blueBundle(), Identities: map[string]*holder{},
	}
}

// federate gives some identities of a foreign trust domain roles, in one way of several.
func (c *cluster) federate(roles []string) {
	which := len(c.Hosts) + 3*len(c.Services) + 5*len(c.Users)
	if which%2 == 0 {
		return
	}
	f := newFederated()
	for i, path := range []string{"user/u70x", "service/s70x", "service/h70x/s71x", "node/h70x"}[which%4:] {
		f.Identities[path] = &holder{Roles: roles[:(which+i)%(len(roles)+1)]}
	}
	f.Services = map[string]*foreignService{
		"s72x":      {[]string{"203.0.113.200:4610", "gate.blue.example:4610"}, 443, "", roles[:which%(len(roles)+1)]},
		"h72x/s73x": {[]string{"[2001:db8::1]:4610"}, 53, "udp", roles[which%len(roles):]},
	}
	if which%3 == 0 {
		f.Profile, f.EndpointID = "https_web", ""
		f.EndpointRoots = roots()[which%len(roots())][:which/3%2]
	}
	c.Federated = map[string]*federated{"blue": f}
	c.Providers["federation"] = provider{Hosts: c.Providers["cert"].Hosts[:1]}
}

// foreigners are who act elsewhere.
func (c *cluster) foreigners() (all []principal) {
	for _, f := range c.Federated {
		for path, h := range f.Identities {
			all = append(all, principal{id: "spiffe://" + f.TrustDomain + "/" + path, roles: h.Roles})
		}
	}
	return all
}

// abroad is who here reaches which services of foreign trust domains.
func (c *cluster) abroad() map[pair]bool {
	pairs := map[pair]bool{}
	for _, p := range c.principals() {
		for _, f := range c.Federated {
			for name, s := range f.Services {
				if slices.ContainsFunc(p.roles, func(held string) bool { return c.leads(held, c.leadingTo(name, s)) }) {
					pairs[pair{p.id, "spiffe://" + f.TrustDomain + "/service/" + name}] = true
				}
			}
		}
	}
	return pairs
}

// leadingTo are the roles that a foreign service has, and those that name it.
func (c *cluster) leadingTo(name string, s *foreignService) []string {
	roles := slices.Clone(s.Roles)
	for role, r := range c.Roles {
		if slices.Contains(r.Services, name+"@blue") {
			roles = append(roles, role)
		}
	}
	return roles
}

// nameAbroad has roles name a foreign service that had them, in some topologies.
func (c *cluster) nameAbroad() {
	if f := c.Federated["blue"]; f != nil && len(c.Services)%2 == 0 {
		s := f.Services["s72x"]
		for _, role := range s.Roles {
			r := *c.Roles[role]
			r.Services = append(slices.Clone(r.Services), "s72x@blue")
			c.Roles[role] = &r
		}
		s.Roles = nil
	}
}

// leads reports whether a role is one of these, or has one in it.
func (c *cluster) leads(held string, to []string) bool {
	return slices.Contains(to, held) || slices.ContainsFunc(c.Roles[held].Roles, func(in string) bool { return c.leads(in, to) })
}

// reaching is who reaches what, there and here.
func (c *cluster) reaching() map[pair]bool {
	all := c.brute()
	maps.DeleteFunc(all, func(p pair, _ bool) bool { return p.foreign() })
	maps.Copy(all, c.abroad())
	return all
}

// foreignAt is where a foreign service is called, nil for one of ours.
func (c *cluster) foreignAt(id string) (at []florete.Addresses) {
	if s := c.elsewhere(id); s != nil {
		for _, a := range s.Address {
			at = append(at, florete.Addresses{a})
		}
	}
	return at
}

// elsewhere is a foreign service by its ID, nil for one of ours.
func (c *cluster) elsewhere(id string) *foreignService {
	for _, f := range c.Federated {
		if s := f.Services[strings.TrimPrefix(id, "spiffe://"+f.TrustDomain+"/service/")]; s != nil {
			return s
		}
	}
	return nil
}

// foreign reports whether who is one of them.
func (p pair) foreign() bool { return !strings.HasPrefix(p.who, "spiffe://laws.flor/") }

// foreignersOn reports whether one of them reaches a service on the host, or is reached from it.
func (c *cluster) foreignersOn(host string) bool {
	abroad := c.abroad()
	for _, p := range c.principals() {
		for reach := range abroad {
			if p.host == host && p.id == reach.who {
				return true
			}
		}
	}
	for _, p := range c.foreigners() {
		for name, s := range c.Services {
			if slices.Contains(s.on(), host) && slices.ContainsFunc(p.roles, func(held string) bool { return c.named(held, name) }) {
				return true
			}
		}
	}
	return false
}

// provides reports whether a host provides a kind.
func (c *cluster) provides(host, kind string) bool {
	return slices.Contains(c.Providers[kind].Hosts, host)
}
