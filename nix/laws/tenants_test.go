package laws

import (
	"fmt"
	"maps"
	"slices"
)

// tenant is a tenant with its rules.
type tenant struct {
	Namespaces []string                  `json:"namespaces"`
	Issuers    map[string]map[string]any `json:"issuers,omitempty"`
	Policies   []map[string]string       `json:"policies,omitempty"`
	Groupings  []map[string]string       `json:"groupings,omitempty"`
	Lifetime   int                       `json:"lifetime,omitempty"`

	RuntimeRules bool `json:"runtimeRules,omitempty"`
}

// tenants adds a few tenants, with rules about services that have their tokens.
func (g generator) tenants(c *cluster) {
	c.Tenants = map[string]*tenant{}
	hosts := c.Providers["jwt"].Hosts
	documents := c.Providers["config"].Hosts
	if documents != nil {
		hosts = documents[:1]
	}
	c.Providers["token"] = provider{Hosts: hosts, Issuer: "https://tenants.example.org", Version: g.IntN(3)}
	services := slices.Sorted(maps.Keys(c.Services))
	for i := range 1 + g.IntN(2) {
		name := fmt.Sprintf("y%dx", i)
		t := &tenant{Namespaces: []string{"n"}, Lifetime: []int{0, 60, 3600}[g.IntN(3)], RuntimeRules: i == 0 && documents != nil}
		objects := []string{"tenant:" + name, "namespace:" + name + "/*", "namespace:" + name + "/n", "stream:" + name + "/n/*", "stream:" + name + "/n/a"}
		policy := func(subject string) {
			t.Policies = append(t.Policies, map[string]string{"subject": subject, "action": "stream.read", "object": objects[g.IntN(len(objects))]})
		}
		if g.IntN(2) == 0 {
			t.Issuers = map[string]map[string]any{"corp": {"issuer": "https://login.example.org", "audiences": []string{"ci"}, "groupsClaim": "groups"}}
			policy("group:corp/devs")
		}
		if g.IntN(2) == 0 {
			policy("role:reader")
			t.Groupings = append(t.Groupings, map[string]string{"member": "role:writer", "role": "role:reader"})
		}
		c.Tenants[name] = t
		for _, s := range g.some(services, 2) {
			c.Services[s].Tokens = map[string]any{"events": map[string]any{"tenant": name, "resources": objects[3:]}}
		}
		for _, s := range g.some(services, 2) {
			c.Services[s].Verifies = []string{name}
		}
	}
}

// tenantsOn returns the tenants whose tokens services of a host use or verify.
func (c *cluster) tenantsOn(host string) (names []string) {
	for _, s := range c.Services {
		if !slices.Contains(s.on(), host) {
			continue
		}
		names = append(names, s.Verifies...)
		if of, ok := s.Tokens["events"].(map[string]any); ok {
			names = append(names, of["tenant"].(string))
		}
	}
	return names
}
