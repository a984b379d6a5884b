package graph

import (
	"maps"
	"slices"
	"strings"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/nix/operator/compile"
)

// withForeign adds the other clusters that the topology declares to the picture. Each is drawn as a
// host with its identities and services.
func (c Cluster) withForeign() Cluster {
	c.Hosts, c.Services, c.Users, c.Roles = maps.Clone(c.Hosts), maps.Clone(c.Services), maps.Clone(c.Users), maps.Clone(c.Roles)
	for place, f := range c.Others() {
		origin := c.Origin(place)
		h := compile.Host{Kind: "server"}
		name := func(id spiffe.ID) string {
			return strings.TrimPrefix(id.Short(), string(spiffe.KindService)+"/") + " of " + origin
		}
		for id, roles := range f.Identities {
			who := id.Short() + " of " + origin
			c.Users[who] = compile.User{ID: id, Roles: roles, Hosts: []string{origin}}
			h.Users = append(h.Users, who)
		}
		for id, roles := range f.Services {
			c.Services[name(id)] = compile.Service{IDs: []spiffe.ID{id}, Hosts: []string{origin}, Published: true, Visibility: "cluster"}
			h.Services = append(h.Services, name(id))
			for _, role := range roles {
				r := c.Roles[role]
				r.Services = append(slices.Clone(r.Services), name(id))
				c.Roles[role] = r
			}
		}
		slices.Sort(h.Users)
		slices.Sort(h.Services)
		if len(h.Users)+len(h.Services) > 0 {
			c.Hosts[origin] = h
		}
	}
	return c
}
