package laws

import (
	"maps"
	"slices"
	"strings"
)

var (
	tags         = []string{"t0x", "t1x"}
	capabilities = []string{"k1x"}
)

// hostGroups returns groups of hosts, some of them nested.
func (g generator) hostGroups(users, roles []string) map[string]*group {
	all := map[string]*group{}
	for _, path := range g.some([]string{"i0x", "i0x/i1x", "i0x/i1x/i2x", "i3x"}, 4) {
		all[path] = &group{Tags: g.some(tags, 1), Capabilities: g.some(append(capabilities, "ingress"), 1)}
		if g.IntN(2) == 0 {
			all[path].Users, all[path].Roles = g.some(users, 1), g.some(roles, 1)
		}
	}
	return all
}

// all returns the attributes of a host, including those from its groups.
func (c *cluster) all(h *host) (sum group) {
	for _, i := range c.levels(h) {
		sum.Users = slices.Concat(sum.Users, i.Users)
		sum.Roles = slices.Concat(sum.Roles, i.Roles, slices.Collect(maps.Keys(i.Until)))
		sum.Capabilities = slices.Concat(sum.Capabilities, i.Capabilities)
		sum.Tags = slices.Concat(sum.Tags, i.Tags)
	}
	return sum
}

// levels returns the attributes of a host itself and of each of its groups.
func (c *cluster) levels(h *host) []group {
	all := []group{h.group}
	for path, i := range c.HostGroups {
		if path == h.Group || strings.HasPrefix(h.Group, path+"/") {
			all = append(all, *i)
		}
	}
	return all
}

// unaddress removes the addresses of devices that no host calls.
func (c *cluster) unaddress() {
	called := map[string]bool{}
	for _, p := range c.Providers {
		for _, h := range p.Hosts {
			called[h] = true
		}
	}
	for _, s := range c.Services {
		for _, h := range s.on() {
			called[h] = true
		}
	}
	for name, h := range c.Hosts {
		if h.Kind == "device" && !called[name] {
			h.Address = ""
		}
	}
}
