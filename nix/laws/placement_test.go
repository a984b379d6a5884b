package laws

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/florete/florete/internal/spiffe"
)

type placement struct {
	Strategy     string   `json:"strategy,omitempty"`
	Near         []string `json:"near,omitempty"`
	Group        string   `json:"group,omitempty"`
	Tags         []string `json:"tags,omitempty"`
	Capabilities []string `json:"capabilities,omitempty"`
	Apart        []string `json:"apart,omitempty"`
	ApartByGroup []string `json:"apartByGroup,omitempty"`
	Spread       string   `json:"spread,omitempty"`
	Pins         []string `json:"pins,omitempty"`
	Size         int      `json:"size,omitempty"`
}

// place gives some services replicas instead of hosts, if enough hosts fit.
func (g generator) place(c *cluster, name string) {
	s := c.Services[name]
	p := &placement{Tags: g.some(tags, 1), Capabilities: g.some(capabilities, 1)}
	if paths := slices.Sorted(maps.Keys(c.HostGroups)); len(paths) > 0 && g.IntN(3) == 0 {
		p.Group = paths[g.IntN(len(paths))]
	}
	fit := len(c.fitting(name, p))
	if fit == 0 || g.IntN(2) == 0 {
		return
	}
	s.Host, s.Hosts, s.Placement, s.Replicas = "", nil, p, 1+g.IntN(min(3, fit))
	switch g.IntN(3) {
	case 0:
		s.Replicas = "all"
	case 1:
		p.Strategy, p.Near = "locality", slices.Sorted(maps.Keys(c.Hosts))[:2]
	}
	g.constrain(c, name)
}

// close makes some hosts take no services, or only those that they keep.
func (g generator) close(c *cluster, hosts, services []string) {
	for _, name := range hosts {
		h := c.Hosts[name]
		h.Cordon, h.Drain = g.IntN(6) == 0, g.IntN(8) == 0
		switch {
		case h.Cordon:
			h.Keeps = g.some(services, 4)
		case h.Drain && len(services) > 0:
			h.Keeps = services[:1]
		}
	}
}

// fitting returns the servers that fit a placement and take the service, sorted.
func (c *cluster) fitting(service string, p *placement) (names []string) {
	s := c.Services[service]
	own := s.Replicas == "all"
	for name, h := range c.Hosts {
		has := c.all(h)
		lacks := func(list, of []string) bool {
			return slices.ContainsFunc(list, func(e string) bool { return !slices.Contains(of, e) })
		}
		closed := (h.Drain || h.Cordon) && !own && !slices.Contains(h.Keeps, service)
		outside := p.Group != "" && h.Group != p.Group && !strings.HasPrefix(h.Group, p.Group+"/")
		if h.Kind != "device" && !closed && !outside && !lacks(p.Tags, has.Tags) && !lacks(p.Capabilities, has.Capabilities) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// settle adds the compiler's placement of replicas, and the reserved services that somebody reaches.
func (c *cluster) settle(docs compiled) {
	for name, groups := range map[string][]string{
		spiffe.ControlService: {"control-plane", "control-plane-write"},
		spiffe.CacheService:   {spiffe.CacheGroup, spiffe.CacheGroup + "-write"},
	} {
		if _, ok := docs.Topology.Services[name]; !ok {
			continue
		}
		c.Services[name] = &service{Hosts: c.Providers["config"].Hosts, ListenPort: 80, Scope: "node", Identity: "proxy-v2"}
		for _, g := range groups {
			if members, ok := c.ServiceGroups[g]; ok {
				c.ServiceGroups[g] = append(slices.Clone(members), name)
			}
		}
	}
	for name, s := range c.Services {
		s.placed = docs.Topology.Services[name].Hosts
	}
}

// runs returns the services on a host.
func (c *cluster) runs(host string) (names []string) {
	for name, s := range c.Services {
		if slices.Contains(s.on(), host) {
			names = append(names, name)
		}
	}
	return names
}

// TestReplicasFit checks that there are as many replicas as wanted, on hosts that fit, and that
// "all" means all hosts that fit.
func TestReplicasFit(t *testing.T) {
	some, every := 0, 0
	for _, s := range samples(t) {
		for _, c := range []*cluster{s.c, s.grown, s.narrower} {
			for name, service := range c.Services {
				fitting := []string(nil)
				if service.Replicas != nil {
					fitting = c.fitting(name, service.Placement)
				}
				misfit := func(h string) bool { return !slices.Contains(fitting, h) }
				switch wanted := service.Replicas.(type) {
				case string:
					every++
					if !slices.Equal(service.placed, fitting) {
						t.Errorf("%s: %s is on %v, want %v", s, name, service.placed, fitting)
					}
				case int, float64:
					some++
					if fmt.Sprint(len(service.placed)) != fmt.Sprint(wanted) || slices.ContainsFunc(service.placed, misfit) {
						t.Errorf("%s: %s is on %v, want %v of %v", s, name, service.placed, wanted, fitting)
					}
				}
			}
		}
	}
	if min(some, every) < len(samples(t)) {
		t.Errorf("only %d and %d services with replicas", some, every)
	}
}

// fleet returns a cluster of n hosts whose services the compiler places.
func (g generator) fleet(n int, strategy string) *cluster {
	c := g.cluster()
	c.Hosts, c.Services = map[string]*host{}, map[string]*service{}
	for i := range n {
		c.Hosts[fmt.Sprintf("h%dx", i)] = &host{Address: fmt.Sprintf("10.9.0.%d", i+1), SSHHostKey: g.host(c, i, nil, nil).SSHHostKey}
	}
	var all []string
	for i := range 12 {
		name := fmt.Sprintf("s%dx", i)
		c.Services[name] = &service{Port: 8000 + i, Replicas: 1 + g.IntN(min(3, n)), Placement: &placement{Strategy: strategy}}
		all = append(all, name)
	}
	c.Teams, c.Outside, c.Redirects = nil, nil, nil
	c.Roles = map[string]*role{"node": {Services: all}, "operator": {Services: all}}
	c.ServiceGroups = map[string][]string{"control-plane": {}, "control-plane-write": {}}
	c.Users, c.HostGroups, c.Rollout, c.Secrets, c.Tenants = nil, nil, nil, nil, nil
	c.Providers = map[string]provider{"cert": {Hosts: []string{"h0x"}}}
	c.Federated, c.Clusters = nil, nil
	return c
}

// TestPlacement checks that a new host takes only its share of services that are placed to move
// little, that a removed one gives away only its own, and that balanced counts differ by at most
// one.
func TestPlacement(t *testing.T) {
	const rounds = 10
	var all []json.RawMessage
	for i := range uint64(rounds) {
		g := generator{rand.New(rand.NewPCG(*seed+i, 1))}
		still := g.fleet(3+g.IntN(8), "minimize-movement")
		grown := still.clone()
		grown.Hosts["h99x"] = &host{Address: "10.9.0.99", SSHHostKey: g.host(grown, 25, nil, nil).SSHHostKey}
		drained := still.clone()
		drained.Hosts["h0x"].Drain = true
		for name, s := range drained.Services {
			s.Replicas = min(still.Services[name].Replicas.(int), len(drained.Hosts)-1)
		}
		all = append(all, raw(still), raw(grown), raw(g.fleet(3+g.IntN(8), "balanced")), raw(drained))
	}
	got, moved := evaluate(t, "nix-instantiate", all), 0
	for i := range rounds {
		before, after, balanced, drained := got[4*i].Topology, got[4*i+1].Topology, got[4*i+2].Topology, got[4*i+3].Topology
		for name, s := range before.Services {
			is := after.Services[name].Hosts
			if len(is) != len(s.Hosts) {
				t.Errorf("round %d: %s runs on %v, then on %v", i, name, s.Hosts, is)
			}
			come := slices.DeleteFunc(slices.Clone(is), func(h string) bool { return slices.Contains(s.Hosts, h) })
			if len(come) > 0 && !slices.Equal(come, []string{"h99x"}) {
				t.Errorf("round %d: %s moves to %v, though only h99x came", i, name, come)
			}
			moved += len(come)
			left := slices.DeleteFunc(slices.Clone(s.Hosts), func(h string) bool { return slices.Contains(drained.Services[name].Hosts, h) })
			if slices.Contains(drained.Services[name].Hosts, "h0x") || len(left) > 1 || len(left) == 1 && left[0] != "h0x" {
				t.Errorf("round %d: %s leaves %v, though only h0x is drained", i, name, left)
			}
		}
		load := map[string]int{}
		for host, h := range balanced.Hosts {
			load[host] = len(h.Services)
		}
		if most, least := slices.Max(slices.Collect(maps.Values(load))), slices.Min(slices.Collect(maps.Values(load))); most-least > 1 {
			t.Errorf("round %d: balanced as %v", i, load)
		}
	}
	if moved == 0 {
		t.Error("nothing ever moves to a new host")
	}
}
