package laws

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// constrain sets requirements of a service with replicas that its hosts certainly fulfil: services
// to be apart from name their hosts, so they do not move, and capacity exceeds the load.
func (generator) constrain(c *cluster, name string) {
	s := c.Services[name]
	p := s.Placement
	g := generator{rand.New(rand.NewPCG(uint64(len(c.Hosts)), uint64(s.Port+s.ListenPort)))}
	for _, h := range slices.Sorted(maps.Keys(c.Hosts))[:2] {
		c.Hosts[h].Weight, c.Hosts[h].Capacity = 1+g.IntN(4), 90
	}
	p.Size = g.IntN(3)
	if s.Replicas == "all" {
		return
	}
	wanted := s.Replicas.(int)
	fit := c.fitting(name, p)
	without := func(taken func(host string) bool) []string { return slices.DeleteFunc(slices.Clone(fit), taken) }
	for _, other := range slices.Sorted(maps.Keys(c.Services)) {
		o := c.Services[other]
		if o.Replicas != nil || other == name {
			continue
		}
		on := o.on()
		apart := without(func(h string) bool { return slices.Contains(on, h) })
		near := func(h string) bool {
			return slices.ContainsFunc(on, func(o string) bool { return c.Hosts[o].Group == c.Hosts[h].Group })
		}
		if len(apart) >= wanted && p.Apart == nil {
			p.Apart, fit = []string{other}, apart
		} else if away := without(near); len(away) >= wanted && p.ApartByGroup == nil {
			p.ApartByGroup, fit = []string{other}, away
		}
	}
	groups := map[string]bool{}
	for _, h := range fit {
		groups[c.Hosts[h].Group] = true
	}
	switch {
	case g.IntN(2) == 0:
		p.Spread = "even"
	case len(groups) >= wanted:
		p.Spread = "one-per-group"
	}
	if g.IntN(2) == 0 && p.Strategy == "" {
		p.Pins = fit[g.IntN(len(fit)):][:1]
	}
}

// TestConstraints checks that the requirements of placement hold for every placed service, or the
// topology is refused, and that a topology without requirements is not refused.
func TestConstraints(t *testing.T) {
	const rounds = 60
	var all []json.RawMessage
	var fleets []*cluster
	for i := range uint64(rounds) {
		g := generator{rand.New(rand.NewPCG(*seed+i, 2))}
		c := g.fleet(6+g.IntN(5), []string{"minimize-movement", "balanced"}[g.IntN(2)])
		c.HostGroups = map[string]*group{"a": {}, "b/x": {}, "b/y": {}}
		for _, name := range slices.Sorted(maps.Keys(c.Hosts)) {
			c.Hosts[name].Group = []string{"a", "b/x", "b/y"}[g.IntN(3)]
			c.Hosts[name].Capacity, c.Hosts[name].Weight = 4+g.IntN(8), 1+g.IntN(3)
		}
		names := slices.Sorted(maps.Keys(c.Services))
		for j, name := range names {
			p := c.Services[name].Placement
			p.Size = 1 + g.IntN(2)
			switch j % 4 {
			case 0:
				p.Apart = []string{names[j+1]}
			case 1:
				c.Services[name].Replicas = 1
				p.ApartByGroup = []string{names[j+2]}
			case 2:
				c.Services[name].Replicas = 1 + g.IntN(2)
				p.Spread = "one-per-group"
			case 3:
				p.Spread, p.Pins = "even", []string{"h2x"}
			}
		}
		fleets, all = append(fleets, c), append(all, raw(c))
	}
	held := 0
	for i, is := range tryAll(t, "nix-instantiate", all) {
		if is.Report != "" {
			continue
		}
		held++
		fleets[i].settle(is)
		for _, broken := range fleets[i].breaches() {
			t.Errorf("round %d: %s", i, broken)
		}
	}
	if held < rounds/6 || held == rounds {
		t.Errorf("%d of %d fleets were placed, want some and not all", held, rounds)
	}
}

// breaches returns the violated requirements of placement, following the definition of the language.
func (c *cluster) breaches() (all []string) {
	load := map[string]int{}
	within := func(name string) map[string]int {
		groups := map[string]int{}
		for _, h := range c.Services[name].placed {
			groups[c.Hosts[h].Group]++
		}
		return groups
	}
	for name, s := range c.Services {
		p := s.Placement
		if p == nil {
			continue
		}
		if len(s.placed) != s.Replicas {
			all = append(all, fmt.Sprintf("%s is on %v, want %v", name, s.placed, s.Replicas))
		}
		for _, h := range s.placed {
			load[h] += p.Size
			for _, other := range p.Apart {
				if slices.Contains(c.Services[other].placed, h) {
					all = append(all, fmt.Sprintf("%s is on %s with %s", name, h, other))
				}
			}
			for _, other := range p.ApartByGroup {
				if within(other)[c.Hosts[h].Group] > 0 {
					all = append(all, fmt.Sprintf("%s is in the group of %s with %s", name, h, other))
				}
			}
		}
		for _, pin := range p.Pins {
			if !slices.Contains(s.placed, pin) {
				all = append(all, fmt.Sprintf("%s is on %v, not on %s", name, s.placed, pin))
			}
		}
		if p.Spread == "one-per-group" && len(within(name)) < len(s.placed) {
			all = append(all, fmt.Sprintf("%s is on %v, some in one group", name, s.placed))
		}
	}
	for h, used := range load {
		if used > c.Hosts[h].Capacity {
			all = append(all, fmt.Sprintf("%s runs %d, it has %d", h, used, c.Hosts[h].Capacity))
		}
	}
	return all
}

// TestWeightAndSpread checks that a host of three times the weight has about three times the share,
// that more weight moves services to that host alone, and that replicas are spread over groups as
// evenly as hosts allow.
func TestWeightAndSpread(t *testing.T) {
	g := generator{rand.New(rand.NewPCG(*seed, 3))}
	light := g.fleet(8, "minimize-movement")
	light.HostGroups = map[string]*group{"a": {}, "b/x": {}, "b/y": {}}
	for i := range 160 {
		name := fmt.Sprintf("w%dx", i)
		light.Services[name] = &service{Port: 9000 + i, Replicas: 1, Placement: &placement{}}
	}
	for i := range 40 {
		name := fmt.Sprintf("e%dx", i)
		light.Services[name] = &service{Port: 9500 + i, Replicas: 4, Placement: &placement{Spread: "even"}}
	}
	for i, group := range []string{"a", "a", "a", "b/x", "b/x", "b/x", "b/y", "b/y"} {
		light.Hosts[fmt.Sprintf("h%dx", i)].Group = group
	}
	heavy := light.clone()
	heavy.Hosts["h3x"].Weight = 3
	got := evaluate(t, "nix-instantiate", []json.RawMessage{raw(light), raw(heavy)})
	count := 0
	for name, s := range got[1].Topology.Services {
		before := got[0].Topology.Services[name].Hosts
		if !slices.Equal(s.Hosts, before) && !slices.Contains(s.Hosts, "h3x") {
			t.Errorf("%s moves from %v to %v, though h3x alone weighs more", name, before, s.Hosts)
		}
		switch {
		case name[0] == 'w' && s.Hosts[0] == "h3x":
			count++
		case name[0] == 'e':
			groups := map[string]int{}
			for _, h := range s.Hosts {
				groups[light.Hosts[h].Group]++
			}
			if groups["a"] != 2 || groups["b/x"] != 1 || groups["b/y"] != 1 {
				t.Errorf("%s is in %v", name, groups)
			}
		}
	}
	if count < 32 || count > 66 { // 160 × 3/10 = 48
		t.Errorf("a host of weight 3 among seven of 1 has %d of 160", count)
	}
}
