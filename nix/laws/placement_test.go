package laws

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// fleet is a cluster of n hosts whose services are placed by the compiler.
func (g generator) fleet(n int, strategy string) *cluster {
	c := g.cluster()
	c.Hosts, c.Services = map[string]*host{}, map[string]*service{}
	for i := range n {
		c.Hosts[fmt.Sprintf("h%dx", i)] = &host{Address: fmt.Sprintf("10.9.0.%d", i+1), SSHHostKey: g.host(i, nil, nil).SSHHostKey}
	}
	var all []string
	for i := range 12 {
		name := fmt.Sprintf("s%dx", i)
		c.Services[name] = &service{Port: 8000 + i, Replicas: 1 + g.IntN(min(3, n)), Placement: map[string]string{"strategy": strategy}}
		all = append(all, name)
	}
	c.Roles = map[string]*role{"node": {Services: all}, "operator": {Services: all}}
	c.Groups = map[string][]string{"control-plane": {}, "control-plane-write": {}}
	c.Users = nil
	c.Providers = map[string]provider{"cert": {Hosts: []string{"h0x"}}}
	return c
}

// A host that comes takes only its share of what is placed to move little, and one
// that goes gives away only its own. What is balanced differs by one at most.
func TestPlacement(t *testing.T) {
	const rounds = 10
	var all []json.RawMessage
	for i := range uint64(rounds) {
		g := generator{rand.New(rand.NewPCG(*seed+i, 1))}
		still := g.fleet(3+g.IntN(8), "minimize-movement")
		grown := still.clone()
		grown.Hosts["h99x"] = &host{Address: "10.9.0.99", SSHHostKey: g.host(25, nil, nil).SSHHostKey}
		all = append(all, raw(still), raw(grown), raw(g.fleet(3+g.IntN(8), "balanced")))
	}
	got, moved := evaluate(t, "nix-instantiate", all), 0
	for i := range rounds {
		before, after, balanced := got[3*i].Topology, got[3*i+1].Topology, got[3*i+2].Topology
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
