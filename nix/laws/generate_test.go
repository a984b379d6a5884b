package laws

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/florete/florete/internal/document"
)

// generator makes random valid topologies.
type generator struct{ *rand.Rand }

func (g generator) cluster() *cluster {
	c := &cluster{
		Serial:      1,
		Name:        "laws",
		TrustDomain: "laws.flor",
		Trust: map[string][]string{
			"signingKeys": {"laws-1:yhdMu+/WKty4yUiUvdFH+BTAvBh1iPl6sZIjcLFeSBM="},
		},
		Hosts:    map[string]*host{},
		Services: map[string]*service{},
		Users:    map[string]*holder{},
		Roles: map[string]*role{
			"node":     {ServiceGroups: []string{"control-plane"}},
			"operator": {ServiceGroups: []string{"control-plane", "control-plane-write"}},
		},
		ServiceGroups: map[string][]string{"control-plane": {}, "control-plane-write": {}},
	}
	roles := g.names("r", 1+g.IntN(5))
	users := g.names("u", g.IntN(6))
	hosts := g.names("h", 2+g.IntN(8))
	services := g.names("s", 1+g.IntN(9))
	groups := g.names("g", g.IntN(4))
	c.HostGroups = g.hostGroups(users, roles)
	for i, name := range hosts {
		c.Hosts[name] = g.host(c, i, users, roles)
	}
	g.close(c, hosts, services)
	for i, name := range services {
		c.Services[name] = g.service(i, hosts, roles)
		g.place(c, name)
	}
	// The contents of roles and groups. A role reaches at least one published service.
	published := slices.DeleteFunc(slices.Clone(services), func(s string) bool { return c.Services[s].Visibility == "host" })
	if len(published) == 0 {
		c.Services[services[0]].Visibility = ""
		published = services[:1]
	}
	for _, name := range groups {
		c.ServiceGroups[name] = g.some(services, 4)
	}
	if g.IntN(3) > 0 {
		c.ServiceGroups["control-plane"] = g.some(services, 2)
		c.ServiceGroups["control-plane-write"] = g.some(services, 2)
		c.Hosts[hosts[0]].Roles = append(c.Hosts[hosts[0]].Roles, "operator")
	}
	for _, name := range roles {
		c.Roles[name] = &role{Services: append(g.some(services, 3), published[g.IntN(len(published))]), ServiceGroups: g.some(groups, 2), Requires: g.some([]string{everywhere}, 1)}
		slices.Sort(c.Roles[name].Services)
		c.Roles[name].Services = slices.Compact(c.Roles[name].Services)
	}
	for _, name := range users {
		c.Users[name] = &holder{Roles: append(g.some(roles, 2), roles[g.IntN(len(roles))])}
	}
	// A service that nobody reaches is valid, but tests little, so the last role reaches each of
	// them.
	last := c.Roles[roles[len(roles)-1]]
	for _, s := range published {
		if !slices.Contains(last.Services, s) && g.IntN(2) == 0 {
			last.Services = append(last.Services, s)
		}
	}
	c.Providers = map[string]provider{
		"cert": {Hosts: hosts[:1+g.IntN(2)], Requires: g.some([]string{everywhere}, 1)},
		"oidc": {Hosts: hosts[len(hosts)-1-g.IntN(2):][:1], Issuer: "https://auth.example.org",
			LDAP:     map[string]any{"corp": map[string]any{"server": "ldaps://ldap.example.org", "people": map[string]any{"base": "ou=people"}, "groups": map[string]any{"base": "ou=groups"}}},
			Upstream: map[string]any{"partner": map[string]any{"issuer": "https://login.example.net/realm", "clientId": "florete"}}},
	}
	c.Providers["jwt"] = provider{Hosts: hosts[g.IntN(len(hosts)):][:1], Issuer: "https://tokens.example.org", Version: g.IntN(3)}
	if g.IntN(2) == 0 {
		c.Providers["config"] = provider{Hosts: hosts[1:min(len(hosts), 2+g.IntN(2))]}
	}
	c.Providers["file"] = provider{Hosts: hosts[g.IntN(len(hosts)-1):][:1]}
	c.Providers["secret"] = provider{Hosts: c.Providers["file"].Hosts}
	for _, name := range services {
		if s := c.Services[name]; g.IntN(4) == 0 {
			s.Files = map[string]file{"secret": {Ref: name + "/secret"}, "config": {name + "/config", "0444", 2, "web.service", []string{"file-" + name + "-secret"}}}
		}
	}
	g.own(c, hosts, services)
	g.databases(c, hosts, services)
	g.git(c, hosts, services)
	g.publish(c)
	g.certify(c)
	c.unaddress()
	c.trust()
	for _, name := range services {
		if s := c.Services[name]; s.Visibility != "host" && g.IntN(4) == 0 {
			s.Limits = g.limits()
		}
	}
	for _, name := range users {
		if g.IntN(3) == 0 {
			c.Users[name].Limits = g.limits()
		}
	}
	g.secrets(c)
	g.tenants(c)
	c.federate(roles)
	c.neighbour(roles)
	c.cache()
	c.rolls()
	c.joins()
	g.teams(c, users, roles)
	c.facts()
	c.ports(services, roles)
	g.parts(c, hosts, roles)
	g.ends(c, roles)
	c.aliases()
	c.nameAbroad()
	g.relays(c)
	c.edge()
	c.logins()
	c.recordings()
	return c
}

// joins makes some hosts join with a token.
func (c *cluster) joins() {
	if c.Providers["config"].Hosts == nil {
		return
	}
	for name, h := range c.Hosts {
		provides := false
		for _, p := range c.Providers {
			provides = provides || slices.Contains(p.Hosts, name)
		}
		if !provides && h.Deploy == "" && len(h.Tags) != 1 {
			h.SSHHostKey = ""
		}
	}
}

// limits returns one or several limits.
func (g generator) limits() *document.Limits {
	l := &document.Limits{Connections: 1 + g.IntN(3)}
	if g.IntN(2) == 0 {
		l.OpensPerSecond = 1 + g.IntN(3)
	}
	if g.IntN(2) == 0 {
		l.BytesPerSecond = 1000 + int64(g.IntN(3))
	}
	if l.OpensPerSecond > 0 && g.IntN(2) == 0 {
		l.Connections = 0
	}
	return l
}

// trust sets the cluster's roots and the settings of its providers, each in one of several ways.
func (c *cluster) trust() {
	which := len(c.Hosts) + 3*len(c.Services) + 5*len(c.Users)
	c.Trust["roots"] = roots()[which%len(roots())]
	cert, oidc := c.Providers["cert"], c.Providers["oidc"]
	cert.Lifetime = []int{10, 0, 7776000}[which%3]
	oidc.Issuer = []string{"https://auth.example.org", "http://auth.example.org:5556", "https://[2001:db8::1]"}[which%3]
	c.Providers["cert"], c.Providers["oidc"] = cert, oidc
	if which%3 == 0 {
		c.Providers["store"] = provider{Kind: "etcd", Hosts: cert.Hosts[:1], From: [][]string{nil, cert.Hosts, cert.Hosts, cert.Hosts}[which%4]}
	}
}

// everywhere is a capability of every host, so that it may be required anywhere.
const everywhere = "k0x"

func (g generator) host(c *cluster, i int, users, roles []string) *host {
	h := &host{
		Address:    fmt.Sprintf("10.9.0.%d", i+1),
		SSHHostKey: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA" + strings.Repeat(string(rune('A'+i)), 41) + "E",
		group:      group{Users: g.some(users, 3), Tags: g.some(tags, 2), Capabilities: append(g.some(capabilities, 1), everywhere)},
	}
	if g.IntN(4) == 0 {
		h.Address = fmt.Sprintf("fd09::%d", i+1)
	}
	for n, network := range []string{"cellar", "attic"} {
		if g.IntN(3) == 0 {
			if h.Networks == nil {
				h.Networks = map[string]string{}
			}
			h.Networks[network] = fmt.Sprintf("10.8.%d.%d", n, i+1)
		}
	}
	if g.IntN(3) == 0 {
		h.Bind = h.Address
	}
	if paths := slices.Sorted(maps.Keys(c.HostGroups)); len(paths) > 0 && g.IntN(2) == 0 {
		h.Group = paths[g.IntN(len(paths))]
	}
	if g.IntN(4) == 0 {
		h.Deploy = "closure"
	}
	if g.IntN(4) == 0 {
		h.Instance = "m0x"
	}
	if g.IntN(3) == 0 {
		h.Kind = "device"
	}
	if g.IntN(3) == 0 {
		h.Roles = g.some(roles, 2)
	}
	if g.IntN(4) == 0 {
		h.Callers = map[string][]any{"node": {"root", "daemon", 1001, "backup@0.service"}}
		for _, u := range h.Users {
			h.Callers["user/"+u] = []any{u, 2000 + i}
		}
	}
	if g.IntN(3) == 0 {
		h.Capabilities = append(h.Capabilities, "ingress")
	}
	if g.IntN(3) == 0 {
		h.Loopback = fmt.Sprintf("127.%d.0.0/16", 100+i)
	}
	if g.IntN(5) == 0 {
		h.Transport = "tcp"
	}
	return h
}

func (g generator) service(i int, hosts, roles []string) *service {
	s := &service{Port: 8000 + i}
	switch g.IntN(4) {
	case 0:
		s.Hosts = append(g.some(hosts, 3), hosts[0])
		slices.Sort(s.Hosts)
		s.Hosts = slices.Compact(s.Hosts)
		if g.IntN(2) == 0 {
			s.Scope = []string{"node", "both"}[g.IntN(2)]
		}
	default:
		s.Host = hosts[g.IntN(len(hosts))]
	}
	switch g.IntN(6) {
	case 0:
		s.Protocol = "udp"
	case 1:
		s.Protocol = "http"
		if g.IntN(2) == 0 {
			s.Identity = "http"
		}
	case 2:
		s.ListenPort = 7000 + i
	case 3:
		s.Port, s.ListenPort, s.Upstream = 0, 7000+i, fmt.Sprintf("unix:/run/web%d.sock", i)
	case 4:
		s.Upstream = fmt.Sprintf("203.0.113.%d:80", i)
	}
	if s.Protocol != "udp" && s.Identity == "" && g.IntN(5) == 0 {
		s.Identity = "proxy-v2"
	}
	if g.IntN(6) == 0 {
		s.Visibility = "host"
	}
	if g.IntN(5) == 0 {
		s.Transport = "tcp"
	}
	if g.IntN(5) == 0 {
		s.AccessLog = "full"
	}
	if g.IntN(2) == 0 {
		s.User = fmt.Sprintf("account%d", i)
		s.Workload = g.IntN(3) == 0
		if s.Workload && g.IntN(2) == 0 {
			s.Audiences = []string{"https://vault.example.org", "s3"}[g.IntN(2):]
		}
	}
	if g.IntN(3) == 0 {
		s.Roles = g.some(roles, 2)
	}
	if g.IntN(3) == 0 {
		s.SSO = map[string]any{"mode": "oidc", "redirectURIs": []string{"https://b.example.org/", "https://a.example.org/"},
			"restart": "web.service", "generation": 1 + g.IntN(2), "dependsOn": g.some([]string{"cert-node"}, 1),
			"scopes": g.some([]string{"profile", "groups", "email", "offline_access"}, 4), "allowedGroups": g.some([]string{"writers", "staff", "ops"}, 2),
			"groups": renamed(i), "claims": claims(i),
			"public": g.IntN(3) == 0, "postLogoutRedirectURIs": g.some([]string{"https://b.example.org/bye", "https://a.example.org/bye"}, 2)}
	}
	return s
}

// renamed returns groups under the names of the i-th service, for some services.
func renamed(i int) map[string][]string {
	return []map[string][]string{{}, {"editor": {"writers"}}, {"editor": {"ops", "staff"}, "Site Admin": {"ops"}}}[i%3]
}

// claims returns further claims of the client of the i-th service, for some services.
func claims(i int) map[string]string {
	return []map[string]string{{"roles": "groups", "nickname": "sub"}, {}, {"nickname": "email"}}[i%3]
}

// names returns n names of a sort, in random order.
func (g generator) names(kind string, n int) []string {
	var list []string
	for _, i := range g.Perm(n) {
		list = append(list, fmt.Sprintf("%s%dx", kind, i))
	}
	return list
}

// some returns at most n of the names, each once.
func (g generator) some(names []string, n int) []string {
	picked := []string{}
	for _, i := range g.Perm(len(names))[:g.IntN(min(n, len(names))+1)] {
		picked = append(picked, names[i])
	}
	return picked
}

func (c *cluster) clone() *cluster {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	var d *cluster
	if err := json.Unmarshal(b, &d); err != nil {
		panic(err)
	}
	if d.Services == nil {
		d.Services = map[string]*service{}
	}
	return d
}

// withHost returns the cluster with another host, and the name of that. Sometimes a service runs on
// it, a new or an existing one.
func (g generator) withHost(c *cluster) (*cluster, string) {
	d, name := c.clone(), "h99x"
	d.Hosts[name] = g.host(d, 25, slices.Sorted(maps.Keys(c.Users)), slices.Sorted(maps.Keys(c.Roles)))
	switch services := slices.Sorted(maps.Keys(d.Services)); g.IntN(3) {
	case 0:
		d.Services["s99x"] = g.service(99, []string{name}, nil)
		d.Services["s99x"].Visibility = ""
		for _, r := range slices.Sorted(maps.Keys(d.Roles))[:1] {
			d.Roles[r].Services = append(d.Roles[r].Services, "s99x")
		}
	case 1:
		if s := d.Services[services[g.IntN(len(services))]]; s.Hosts != nil {
			s.Hosts = append(s.Hosts, name)
		}
	}
	return d, name
}

// withoutRole returns the cluster without a role of one holder, or with a role that reaches less.
func (g generator) withoutRole(c *cluster) *cluster {
	d := c.clone()
	drop := func(list []string) []string {
		if len(list) == 0 {
			return list
		}
		i := g.IntN(len(list))
		return slices.Delete(slices.Clone(list), i, i+1)
	}
	for _, i := range g.Perm(7) {
		switch i {
		case 0:
			for _, name := range slices.Sorted(maps.Keys(d.Users)) {
				if u := d.Users[name]; len(u.Roles) > 1 {
					u.Roles = drop(u.Roles)
					return d.withdraw()
				}
			}
		case 1:
			for _, name := range slices.Sorted(maps.Keys(d.Hosts)) {
				if h := d.Hosts[name]; len(h.Roles) > 0 {
					h.Roles = drop(h.Roles)
					return d.withdraw()
				}
			}
		case 2:
			for _, name := range slices.Sorted(maps.Keys(d.Services)) {
				if s := d.Services[name]; len(s.Roles) > 0 {
					s.Roles = drop(s.Roles)
					return d.withdraw()
				}
			}
		case 3:
			for _, name := range slices.Sorted(maps.Keys(d.Roles)) {
				if r := d.Roles[name]; len(r.ServiceGroups) > 0 {
					r.ServiceGroups = drop(r.ServiceGroups)
					return d.withdraw()
				}
			}
		case 4:
			for _, name := range slices.Sorted(maps.Keys(d.HostGroups)) {
				if i := d.HostGroups[name]; len(i.Roles) > 0 {
					i.Roles = drop(i.Roles)
					return d.withdraw()
				}
			}
		case 5:
			for _, name := range slices.Sorted(maps.Keys(d.Teams)) {
				if of := d.Teams[name]; len(of.Roles) > 0 {
					of.Roles = drop(of.Roles)
					return d.withdraw()
				}
			}
		case 6:
			for _, name := range slices.Sorted(maps.Keys(d.Roles)) {
				if r := d.Roles[name]; len(r.Roles) > 0 {
					r.Roles = drop(r.Roles)
					return d.withdraw()
				}
			}
		}
	}
	return d.withdraw()
}
