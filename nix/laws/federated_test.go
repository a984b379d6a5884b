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

// elsewhere declares the identities and services of another cluster.
type elsewhere struct {
	Identities map[string]*holder         `json:"identities"`
	Services   map[string]*foreignService `json:"services,omitempty"`
}

// foreignService is a service of another cluster that is reached from this one.
type foreignService struct {
	Address  []string `json:"address"`
	Port     int      `json:"port"`
	Protocol string   `json:"protocol,omitempty"`
	Roles    []string `json:"roles,omitempty"`

	TLSName string       `json:"tlsName,omitempty"`
	Ingress *publicRules `json:"ingress,omitempty"`
}

// blueBundle returns the bundle of blue.example.
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

// federate declares a foreign trust domain, some of whose identities get roles, in one of several
// ways.
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
		"s72x":      {Address: []string{"203.0.113.200:4610", "gate.blue.example:4610"}, Port: 443, Roles: roles[:which%(len(roles)+1)]},
		"h72x/s73x": {Address: []string{"[2001:db8::1]:4610"}, Port: 53, Protocol: "udp", Roles: roles[which%len(roles):]},
	}
	if which%3 == 0 {
		f.Profile, f.EndpointID = "https_web", ""
		f.EndpointRoots = roots()[which%len(roots())][:which/3%2]
	}
	c.Federated = map[string]*federated{"blue": f}
	c.Providers["federation"] = provider{Hosts: c.Providers["cert"].Hosts[:1]}
}

// neighbour declares another cluster of the same trust domain, in one of several ways.
func (c *cluster) neighbour(roles []string) {
	which := 2*len(c.Hosts) + len(c.Services) + 3*len(c.Users)
	if which%3 == 0 {
		return
	}
	e := &elsewhere{Identities: map[string]*holder{}, Services: map[string]*foreignService{
		"s82x":      {Address: []string{"203.0.113.201:4610"}, Port: 443, Roles: roles[:which%(len(roles)+1)]},
		"h82x/s83x": {Address: []string{"gate.example:4610", "[2001:db8::2]:4610"}, Port: 53, Protocol: "udp", Roles: roles[which%len(roles):]},
	}}
	for i, path := range []string{"user/u80x", "service/s80x", "service/h80x/s81x", "node/h80x"}[which%4:] {
		e.Identities[path] = &holder{Roles: roles[:(which+i)%(len(roles)+1)]}
	}
	c.Clusters = map[string]*elsewhere{"green": e}
}

// neighbours matches IDs of another cluster of this trust domain.
var neighbours = regexp.MustCompile(`/[uhs]8[0-9]x`)

// other is another cluster, with the prefix of its IDs.
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

// foreigners returns the principals of other clusters.
func (c *cluster) foreigners() (all []principal) {
	for _, f := range c.others() {
		for path, h := range f.Identities {
			all = append(all, principal{id: f.ids + path, roles: h.Roles})
		}
	}
	return all
}

// abroad returns the pairs of a principal here and a foreign service that it reaches.
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

// leadingTo returns the roles of a foreign service, and those that name it.
func (c *cluster) leadingTo(name string, s *foreignService) []string {
	roles := slices.Clone(s.Roles)
	for role, r := range c.Roles {
		if slices.Contains(r.Services, name) {
			roles = append(roles, role)
		}
	}
	return roles
}

// nameAbroad lets roles name a foreign service instead of the other way round, in some topologies.
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

// publishAbroad gives services of other clusters public names at the ingresses here that reach them,
// some with rules. It draws no random numbers, so that the rest of the topology does not change.
func (c *cluster) publishAbroad() {
	for i, f := range c.others() {
		for name, public := range map[string]string{"s72x": "n72x.example.org", "s82x": "n82x.example.org"} {
			s := f.Services[name]
			if s == nil {
				continue
			}
			s.TLSName = public
			hosts := c.servesAbroad(f.ids+"service/"+name, s)
			switch which := (len(c.Services) + i) % 3; {
			case len(hosts) == 0:
				s.TLSName = ""
			case which > 0:
				s.Ingress = &publicRules{From: strange[:which], HSTS: which, Paths: map[string]*pathRule{"/admin": {Deny: true}, "/ws": {From: strange[which:]}}}
				if which == 2 {
					s.Ingress.Hosts = hosts[:1]
				}
			}
		}
	}
}

// servesAbroad returns the hosts that serve the public name of a service of another cluster, sorted.
func (c *cluster) servesAbroad(id string, s *foreignService) (hosts []string) {
	reached := c.abroad()
	for _, p := range c.principals() {
		ingress := slices.Contains(c.all(c.Hosts[p.host]).Capabilities, "ingress") && (s.Ingress == nil || len(s.Ingress.Hosts) == 0 || slices.Contains(s.Ingress.Hosts, p.host))
		if s.TLSName != "" && ingress && reached[pair{p.id, id}] {
			hosts = append(hosts, p.host)
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// withdrawAbroad takes out the public names of services of other clusters that no ingress reaches,
// because they would be a fault.
func (c *cluster) withdrawAbroad() {
	for _, f := range c.others() {
		for name, s := range f.Services {
			if s.TLSName != "" && len(c.servesAbroad(f.ids+"service/"+name, s)) == 0 {
				s.TLSName, s.Ingress = "", nil
			}
		}
	}
}

// namesAbroad returns the public names of services of other clusters that a host serves.
func (c *cluster) namesAbroad(host string) (names []string) {
	for _, f := range c.others() {
		for name, s := range f.Services {
			if slices.Contains(c.servesAbroad(f.ids+"service/"+name, s), host) {
				names = append(names, s.TLSName)
			}
		}
	}
	return names
}

// leads reports whether a role is one of some roles, or contains one.
func (c *cluster) leads(held string, to []string) bool {
	return slices.Contains(to, held) || slices.ContainsFunc(c.role(held).Roles, func(in string) bool { return c.leads(in, to) })
}

// reaching returns the pairs of principals of this cluster and services anywhere.
func (c *cluster) reaching() map[pair]bool {
	all := c.brute()
	maps.DeleteFunc(all, func(p pair, _ bool) bool { return p.foreign() })
	maps.Copy(all, c.abroad())
	return all
}

// foreignAt returns the addresses of a foreign service, or nil for a service of this cluster.
func (c *cluster) foreignAt(id string) (at []document.Addresses) {
	if s := c.elsewhere(id); s != nil {
		for _, a := range s.Address {
			at = append(at, document.Addresses{a})
		}
	}
	return at
}

// elsewhere returns a foreign service by its ID, or nil for a service of this cluster.
func (c *cluster) elsewhere(id string) *foreignService {
	for _, f := range c.others() {
		if s := f.Services[strings.TrimPrefix(id, f.ids+"service/")]; s != nil {
			return s
		}
	}
	return nil
}

// foreign reports whether the principal belongs to another cluster.
func (p pair) foreign() bool {
	return !strings.HasPrefix(p.who, "spiffe://laws.flor/") || neighbours.MatchString(p.who)
}

// foreignersOn reports whether an identity of a foreign trust domain reaches a service on the host,
// or one of its services is reached from the host.
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

// mentioned returns all generated names in the topology.
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
