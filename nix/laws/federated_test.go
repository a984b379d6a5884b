package laws

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/florete/florete/internal/document"
)

// federated is a foreign trust domain.
type federated struct {
	TrustDomain string `json:"trustDomain"`
	Endpoint    string `json:"endpoint"`
	EndpointID  string `json:"endpointID,omitempty"`
	Bundle      string `json:"bundle"`
	elsewhere

	Profile       string   `json:"profile,omitempty"`
	EndpointRoots []string `json:"endpointRoots,omitempty"`
}

// elsewhere is what another cluster has.
type elsewhere struct {
	Identities map[string]*holder         `json:"identities"`
	Services   map[string]*foreignService `json:"services,omitempty"`
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
		Bundle: blueBundle(), elsewhere: elsewhere{Identities: map[string]*holder{}},
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

// neighbour declares another cluster of the same trust domain, in one way of several.
func (c *cluster) neighbour(roles []string) {
	which := 2*len(c.Hosts) + len(c.Services) + 3*len(c.Users)
	if which%3 == 0 {
		return
	}
	e := &elsewhere{Identities: map[string]*holder{}, Services: map[string]*foreignService{
		"s82x":      {[]string{"203.0.113.201:4610"}, 443, "", roles[:which%(len(roles)+1)]},
		"h82x/s83x": {[]string{"gate.example:4610", "[2001:db8::2]:4610"}, 53, "udp", roles[which%len(roles):]},
	}}
	for i, path := range []string{"user/u80x", "service/s80x", "service/h80x/s81x", "node/h80x"}[which%4:] {
		e.Identities[path] = &holder{Roles: roles[:(which+i)%(len(roles)+1)]}
	}
	c.Clusters = map[string]*elsewhere{"green": e}
}

// neighbours are those that are of another cluster of this trust domain.
var neighbours = regexp.MustCompile(`/[uhs]8[0-9]x`)

// other is another cluster, with the start of its IDs.
type other struct {
	elsewhere
	name, ids string
}

func (c *cluster) others() (all []other) {
	for name, f := range c.Federated {
		all = append(all, other{f.elsewhere, name, "spiffe://" + f.TrustDomain + "/"})
	}
	for name, e := range c.Clusters {
		all = append(all, other{*e, name, "spiffe://laws.flor/"})
	}
	return all
}

// foreigners are who act elsewhere.
func (c *cluster) foreigners() (all []principal) {
	for _, f := range c.others() {
		for path, h := range f.Identities {
			all = append(all, principal{id: f.ids + path, roles: h.Roles})
		}
	}
	return all
}

// abroad is who here reaches which services of foreign trust domains.
func (c *cluster) abroad() map[pair]bool {
	pairs := map[pair]bool{}
	for _, p := range c.principals() {
		for _, f := range c.others() {
			for name, s := range f.Services {
				if slices.ContainsFunc(p.roles, func(held string) bool { return c.leads(held, c.leadingTo(name+"@"+f.name, s)) }) {
					pairs[pair{p.id, f.ids + "service/" + name}] = true
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
		if slices.Contains(r.Services, name) {
			roles = append(roles, role)
		}
	}
	return roles
}

// nameAbroad has roles name a foreign service that had them, in some topologies.
func (c *cluster) nameAbroad() {
	if len(c.Services)%2 > 0 {
		return
	}
	for _, f := range c.others() {
		for _, name := range []string{"s72x", "s82x"} {
			s := f.Services[name]
			if s == nil {
				continue
			}
			for _, role := range s.Roles {
				r := *c.Roles[role]
				r.Services = append(slices.Clone(r.Services), name+"@"+f.name)
				c.Roles[role] = &r
			}
			s.Roles = nil
		}
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
func (c *cluster) foreignAt(id string) (at []document.Addresses) {
	if s := c.elsewhere(id); s != nil {
		for _, a := range s.Address {
			at = append(at, document.Addresses{a})
		}
	}
	return at
}

// elsewhere is a foreign service by its ID, nil for one of ours.
func (c *cluster) elsewhere(id string) *foreignService {
	for _, f := range c.others() {
		if s := f.Services[strings.TrimPrefix(id, f.ids+"service/")]; s != nil {
			return s
		}
	}
	return nil
}

// foreign reports whether who is one of them.
func (p pair) foreign() bool {
	return !strings.HasPrefix(p.who, "spiffe://laws.flor/") || neighbours.MatchString(p.who)
}

// foreignersOn reports whether one of a foreign trust domain reaches a service on the host, or is reached from it.
func (c *cluster) foreignersOn(host string) bool {
	abroad := c.abroad()
	ours := func(id string) bool { return strings.HasPrefix(id, "spiffe://laws.flor/") }
	for _, p := range c.principals() {
		for reach := range abroad {
			if p.host == host && p.id == reach.who && !ours(reach.what) {
				return true
			}
		}
	}
	for _, p := range c.foreigners() {
		for name, s := range c.Services {
			if !ours(p.id) && slices.Contains(s.on(), host) && slices.ContainsFunc(p.roles, func(held string) bool { return c.named(held, name) }) {
				return true
			}
		}
	}
	return false
}

// mentioned are all names that the topology has.
func (c *cluster) mentioned() map[string]bool {
	names := map[string]bool{}
	for _, name := range mention.FindAllString(string(raw(c)), -1) {
		names[name] = true
	}
	return names
}

// provides reports whether a host provides a kind.
func (c *cluster) provides(host, kind string) bool {
	return slices.Contains(c.Providers[kind].Hosts, host)
}
