package graph

import (
	"fmt"
	"strings"
	"testing"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/tests/kit"
)

// TestRelayed checks that edges to services are dashed where hosts are reached through relays alone,
// also where an edge stands for several.
func TestRelayed(t *testing.T) {
	hosts := map[string]compile.Host{
		"vault":  {Address: []string{"192.0.2.9"}, Hidden: true, Relays: []string{"gate"}, Services: []string{"safe"}},
		"nas":    {Networks: map[string][]string{"home": {}}, Relays: []string{"gate"}, Services: []string{"films"}},
		"beta":   {Address: []string{"192.0.2.2"}, Relays: []string{"gate"}, Services: []string{"wiki"}},
		"rack":   {Networks: map[string][]string{"dc": {"10.0.0.1"}}, Relays: []string{"gate"}, Services: []string{"log"}},
		"laptop": {Users: []string{"ann"}, Roles: []string{"reader"}},
	}
	draw := func(more int, reached ...string) map[string]string {
		c := Cluster{Topology: compile.Topology{Hosts: map[string]compile.Host{}, Services: map[string]compile.Service{},
			Users: map[string]compile.User{"ann": {Roles: []string{"reader"}, Hosts: []string{"laptop"}}},
			Roles: map[string]compile.Role{"reader": {Services: reached}}}}
		for name, h := range hosts {
			c.Hosts[name] = h
			for _, s := range h.Services {
				c.Services[s] = compile.Service{IDs: []spiffe.ID{kit.ID("service/" + s)}, Visibility: "cluster", Hosts: []string{name}, Published: true}
			}
		}
		for i := range more {
			c.Hosts[fmt.Sprint("h", i)] = compile.Host{Users: []string{"ann"}}
		}
		c.nodes = len(c.Hosts)
		drawn := map[string]string{}
		for form, draw := range formats {
			drawn[form] = string(draw(c))
		}
		return drawn
	}
	dashes := map[string]string{"svg": `stroke-dasharray="6 4"`, "dot": "[style=dashed]", "mmd": "-.->"}
	for form, text := range draw(0, "films", "log", "safe", "wiki") {
		want := 2
		if form == "svg" { // in the legend, too
			want++
		}
		if n := strings.Count(text, dashes[form]); n != want {
			t.Errorf("%s: %d dashed edges, want %d:\n%s", form, n, want, text)
		}
	}
	for form, text := range draw(0, "log", "wiki") {
		if strings.Contains(text, dashes[form]) {
			t.Errorf("%s: an edge to a host with an address is dashed", form)
		}
	}
	for reached, want := range map[string]bool{"films safe": true, "films safe wiki": false} {
		if got := strings.Contains(draw(80, strings.Fields(reached)...)["svg"], dashes["svg"]); got != want {
			t.Errorf("an edge to %s is dashed: %v, want %v", reached, got, want)
		}
	}
}
