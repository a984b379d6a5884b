package laws

import (
	"fmt"
	"maps"
	"slices"
)

// edits are single changes that an operator might make; each returns false if it found nothing to
// change. An edit that causes faults is dropped.
var edits = map[string]func(g generator, c *cluster) bool{
	"upstream elsewhere": onService(func(g generator, s *service) bool {
		s.Upstream = []string{"10.0.0.5:22", "127.0.0.1:22", "unix:/run/docker.sock"}[g.IntN(3)]
		if s.ListenPort == 0 {
			s.ListenPort = s.Port
		}
		s.Port = 0
		return true
	}),
	"another port":             onService(func(g generator, s *service) bool { s.Port += 1000; return s.Port > 1000 }),
	"another port for callers": onService(func(g generator, s *service) bool { s.ListenPort += 1000; return s.ListenPort > 1000 }),
	"another account":          onService(func(g generator, s *service) bool { s.User = "other"; return true }),
	"no account":               onService(func(g generator, s *service) bool { had := s.User != ""; s.User, s.Workload = "", false; return had }),
	"hidden":                   onService(func(g generator, s *service) bool { s.Visibility = "host"; return true }),
	"published":                onService(func(g generator, s *service) bool { had := s.Visibility == "host"; s.Visibility = ""; return had }),
	"datagrams":                onService(func(g generator, s *service) bool { s.Protocol = "udp"; return true }),
	"callers by headers":       onService(func(g generator, s *service) bool { s.Identity = "http"; return s.Protocol == "http" }),
	"callers by a header":      onService(func(g generator, s *service) bool { s.Identity = "proxy-v2"; return s.Protocol != "udp" }),
	"over TCP":                 onService(func(g generator, s *service) bool { had := s.Transport != ""; s.Transport = "tcp"; return !had }),
	"its key for its account":  onService(func(g generator, s *service) bool { had := s.Workload; s.Workload = true; return !had && s.User != "" }),
	"connections logged": onService(func(g generator, s *service) bool {
		had := s.AccessLog
		s.AccessLog = "sampled"
		return had != "sampled"
	}),
	"all connections logged": onService(func(g generator, s *service) bool { had := s.AccessLog; s.AccessLog = "full"; return had != "full" }),
	"over anything":          onService(func(g generator, s *service) bool { had := s.Transport != ""; s.Transport = ""; return had }),
	"other limits":           onService(func(g generator, s *service) bool { s.Limits = g.limits(); return true }),
	"no limits":              onService(func(g generator, s *service) bool { had := s.Limits != nil; s.Limits = nil; return had }),
	"other limits of a user": onUser(func(g generator, u *holder) bool { u.Limits = g.limits(); return true }),
	"no limits of a user":    onUser(func(g generator, u *holder) bool { had := u.Limits != nil; u.Limits = nil; return had }),
	"callers unnamed":        onService(func(g generator, s *service) bool { had := s.Identity != ""; s.Identity = ""; return had }),
	"another public name": onService(func(g generator, s *service) bool {
		s.TLSName = "other.example.org"
		return s.Visibility == "public"
	}),
	"another alias": onService(func(g generator, s *service) bool {
		s.Aliases = []string{"*.other", "other"}
		return s.Visibility != "host" && s.Scope != "node"
	}),
	"an alias moves": func(g generator, c *cluster) bool {
		from, to := pick(g, c.Services), pick(g, c.Services)
		if from == to || from.Aliases == nil || to.Visibility == "host" || to.Scope == "node" {
			return false
		}
		from.Aliases, to.Aliases = nil, append(slices.Clone(to.Aliases), from.Aliases...)
		return true
	},
	"a service's name is another's": func(g generator, c *cluster) bool {
		names := slices.Sorted(maps.Keys(c.Services))
		name, to := names[g.IntN(len(names))], pick(g, c.Services)
		if c.Services[name] == to || to.Visibility == "host" || to.Scope == "node" {
			return false
		}
		c.drop(name)
		to.Aliases = append(slices.Clone(to.Aliases), name)
		return true
	},
	"no alias": onService(func(g generator, s *service) bool { had := s.Aliases != nil; s.Aliases = nil; return had }),
	"no public name of many": func(_ generator, c *cluster) bool {
		for _, name := range sorted(c.Services) {
			if s := c.Services[name]; s.TLSAliases != nil {
				s.TLSAliases = nil
				return true
			}
		}
		return false
	},
	"another secret": onFile(func(f *file) { f.Ref = "root/key" }),
	"another mode":   onFile(func(f *file) { f.Mode = "0640" }),
	"own mode":       onFile(func(f *file) { f.Mode = "0400" }),
	"longer secret": onSecret(func(g generator, c *cluster, s *generated) bool {
		had := s.Length
		s.Length += 8
		return had > 0
	}),
	"shorter secret": onSecret(func(g generator, c *cluster, s *generated) bool {
		had := s.Length
		s.Length = 18
		return had > 0
	}),
	"another form":       onSecret(func(g generator, c *cluster, s *generated) bool { s.Generate, s.Length = "ssh", 0; return true }),
	"kept for longer":    onSecret(func(g generator, c *cluster, s *generated) bool { s.Rotate = 99; return true }),
	"replaced by itself": onSecret(func(g generator, c *cluster, s *generated) bool { had := s.Rotate; s.Rotate = 1; return had == 0 }),
	"another key":        onSecret(func(g generator, c *cluster, s *generated) bool { s.Generation = 5; return true }),
	"another overlap":    onSecret(func(g generator, c *cluster, s *generated) bool { s.Overlap = 120; return true }),
	"another reader": onSecret(func(g generator, c *cluster, s *generated) bool {
		s.Readers = []reader{{Host: slices.Sorted(maps.Keys(c.Hosts))[0], Overlap: g.IntN(2) == 0}}
		return true
	}),
	"another generation": onFile(func(f *file) { f.Generation = 7 }),
	"another unit":       onFile(func(f *file) { f.Restart = "ssh.service" }),
	"a file more": onService(func(g generator, s *service) bool {
		s.Files = maps.Clone(s.Files)
		if s.Files == nil {
			s.Files = map[string]file{}
		}
		s.Files["more"] = file{Ref: "more/" + fmt.Sprint(g.IntN(2))}
		return true
	}),
	"no files": onService(func(g generator, s *service) bool { had := s.Files != nil; s.Files = nil; return had }),
	"callback more": onSSO(func(sso map[string]any) {
		sso["redirectURIs"] = []string{"https://a.example.org/", "https://b.example.org/", "https://evil.example/"}
	}),
	"a former name":   onSSO(func(sso map[string]any) { sso["called"] = "former" }),
	"no groups":       onSSO(func(sso map[string]any) { sso["allowedGroups"] = []string{} }),
	"a group more":    onSSO(func(sso map[string]any) { sso["allowedGroups"] = []string{"writers", "staff", "ops", "guests"} }),
	"a group renamed": onSSO(func(sso map[string]any) { sso["groups"] = map[string][]string{"editor": {"staff", "guests"}} }),
	"own groups":      onSSO(func(sso map[string]any) { delete(sso, "groups") }),
	"a claim more": onSSO(func(sso map[string]any) {
		sso["claims"] = map[string]string{"roles": "groups", "login": "preferred_username"}
	}),
	"all scopes":    onSSO(func(sso map[string]any) { sso["scopes"] = []string{} }),
	"public":        onSSO(func(sso map[string]any) { sso["public"] = true }),
	"callback less": onSSO(func(sso map[string]any) { sso["redirectURIs"] = []string{"https://a.example.org/"} }),
	"sign-in": onService(func(g generator, s *service) bool {
		had := s.SSO != nil
		s.SSO = map[string]any{"mode": "oidc", "redirectURIs": []string{"https://a.example.org/"}}
		return !had
	}),
	"no sign-in": onService(func(g generator, s *service) bool { had := s.SSO != nil; s.SSO = nil; return had }),
	"role of a service": func(g generator, c *cluster) bool {
		roles := slices.Sorted(maps.Keys(c.Roles))
		s := pick(g, c.Services)
		s.Roles = append(slices.Clone(s.Roles), roles[g.IntN(len(roles))])
		return true
	},
	"role of a host": func(g generator, c *cluster) bool {
		roles := slices.Sorted(maps.Keys(c.Roles))
		h := pick(g, c.Hosts)
		h.Roles = append(slices.Clone(h.Roles), roles[g.IntN(len(roles))])
		return true
	},
	"service of a role": func(g generator, c *cluster) bool {
		services := slices.Sorted(maps.Keys(c.Services))
		r := pick(g, c.Roles)
		r.Services = append(slices.Clone(r.Services), services[g.IntN(len(services))])
		return true
	},
	"user of a host": func(g generator, c *cluster) bool {
		users := slices.Sorted(maps.Keys(c.Users))
		if len(users) == 0 {
			return false
		}
		h := pick(g, c.Hosts)
		h.Users = append(slices.Clone(h.Users), users[g.IntN(len(users))])
		return true
	},
	"account of a host": func(g generator, c *cluster) bool {
		pick(g, c.Hosts).Callers = map[string][]any{"node": {"root", "backup", g.IntN(3), "backup.service"}}
		return true
	},
	"no users of a host": func(g generator, c *cluster) bool {
		h := pick(g, c.Hosts)
		had := len(h.Users) > 0
		h.Users = nil
		return had
	},
	"key of a host": func(g generator, c *cluster) bool {
		h := pick(g, c.Hosts)
		if h.SSHHostKey == "" {
			return false
		}
		h.SSHHostKey = h.SSHHostKey[:40] + "zzzz" + h.SSHHostKey[44:]
		return true
	},
	"address of a host": func(g generator, c *cluster) bool {
		h := pick(g, c.Hosts)
		had := h.Address != ""
		h.Address = "10.77.0.1"
		return had
	},
	"a relay": func(g generator, c *cluster) bool {
		h := pick(g, c.Hosts)
		had := h.Relay
		h.Relay = true
		return !had
	},
	"other relays": func(g generator, c *cluster) bool {
		h := pick(g, c.Hosts)
		h.Relays = nil
		for name, r := range c.Hosts {
			if r.Relay && r != h && g.IntN(2) == 0 {
				h.Relays = append(h.Relays, name)
			}
		}
		slices.Sort(h.Relays)
		return true
	},
	"a hidden host": func(g generator, c *cluster) bool {
		h := pick(g, c.Hosts)
		had := h.Hidden
		h.Hidden, c.PathSalt = true, "a-salt-for-hidden-hosts"
		return !had && h.Relays != nil
	},
	"no hidden hosts": func(g generator, c *cluster) (had bool) {
		for _, h := range c.Hosts {
			had = had || h.Hidden
			h.Hidden = false
		}
		return had
	},
	"ingress": func(g generator, c *cluster) bool {
		h := pick(g, c.Hosts)
		h.Capabilities = append(slices.Clone(h.Capabilities), "ingress")
		return true
	},
	"instance": func(g generator, c *cluster) bool { pick(g, c.Hosts).Instance = "m1x"; return true },
	"tags":     func(g generator, c *cluster) bool { pick(g, c.Hosts).Tags = []string{"t7x"}; return true },
	"loopback": func(g generator, c *cluster) bool { pick(g, c.Hosts).Loopback = "127.200.0.0/16"; return true },
	"deploy": func(g generator, c *cluster) bool {
		h := pick(g, c.Hosts)
		h.Deploy = "closure"
		return h.SSHHostKey != ""
	},
	"root": func(g generator, c *cluster) bool {
		c.Trust["roots"] = append(c.Trust["roots"], "-----BEGIN CERTIFICATE-----\nbW9yZQ==\n-----END CERTIFICATE-----\n")
		return true
	},
	"key": func(g generator, c *cluster) bool {
		c.Trust["signingKeys"] = append(c.Trust["signingKeys"], "laws-2:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
		return true
	},
	"foreign role": onForeign(func(g generator, c *cluster, f *federated) bool {
		f.Identities["user/u71x"] = &holder{Roles: []string{}}
		for _, name := range slices.Sorted(maps.Keys(c.Roles)) {
			if name != "node" && name != "operator" {
				f.Identities["user/u71x"].Roles = []string{name}
			}
		}
		return true
	}),
	"foreign endpoint": onForeign(func(_ generator, _ *cluster, f *federated) bool {
		f.Endpoint, f.EndpointID = "https://evil.example/", "spiffe://blue.example/evil"
		return true
	}),
	"foreign root": onForeign(func(_ generator, _ *cluster, f *federated) bool {
		f.Bundle = `{"keys":[{"use":"x509-svid","x5c":["ZXZpbA=="]}]}`
		return true
	}),
	"role of another cluster": func(_ generator, c *cluster) bool {
		e := c.Clusters["green"]
		if e == nil {
			return false
		}
		e.Identities["user/u81x"] = &holder{Roles: []string{}}
		for _, name := range slices.Sorted(maps.Keys(c.Roles)) {
			if name != "node" && name != "operator" {
				e.Identities["user/u81x"].Roles = []string{name}
			}
		}
		return true
	},
	"another cluster":      func(_ generator, c *cluster) bool { c.Clusters = nil; return true },
	"foreign trust domain": func(_ generator, c *cluster) bool { c.Federated = nil; return true },
	"issuer":               onProvider("oidc", func(g generator, p *provider) { p.Issuer = "https://login.evil.example" }),
	"issuer of tokens":     onProvider("jwt", func(g generator, p *provider) { p.Issuer = "https://tokens.evil.example" }),
	"keys of tokens":       onProvider("jwt", func(g generator, p *provider) { p.Version = 9 }),
	"audience": onService(func(g generator, s *service) bool {
		s.Audiences = append(slices.Clone(s.Audiences), "https://evil.example")
		return s.Workload
	}),
	"longer lifetime":  onProvider("cert", func(g generator, p *provider) { p.Lifetime = 864000 }),
	"shorter lifetime": onProvider("cert", func(g generator, p *provider) { p.Lifetime = 3600 }),
	"less often":       onProvider("config", func(g generator, p *provider) { p.Every = 9000 }),
	"more often":       onProvider("config", func(g generator, p *provider) { p.Every = 90 }),
	"fewer providers":  onProvider("cert", func(g generator, p *provider) { p.Hosts = p.Hosts[:1] }),
	"providers in another order": onProvider("cert", func(g generator, p *provider) {
		p.Hosts = slices.Clone(p.Hosts)
		slices.Reverse(p.Hosts)
	}),
	"a provider more": func(g generator, c *cluster) bool {
		hosts := slices.Sorted(maps.Keys(c.Hosts))
		return onProvider("config", func(g generator, p *provider) { p.Hosts = append(slices.Clone(p.Hosts), hosts[g.IntN(len(hosts))]) })(g, c)
	},
	"a public port": onService(func(g generator, s *service) bool {
		s.PublicPorts = map[string]*publicPort{"smtp": {Port: 3998, From: g.some(strange, 2)}}
		return s.Visibility == "public"
	}),
	"another public port":       onPublicPort(func(_ generator, p *publicPort) bool { p.Port++; return true }),
	"other strangers":           onPublicPort(func(g generator, p *publicPort) bool { p.From = g.some(strange, 3); return true }),
	"all strangers":             onPublicPort(func(_ generator, p *publicPort) bool { had := p.From != nil; p.From = nil; return had }),
	"other limits of strangers": onPublicPort(func(g generator, p *publicPort) bool { p.Limits = g.limits(); return true }),
	"no limits of strangers":    onPublicPort(func(_ generator, p *publicPort) bool { had := p.Limits != nil; p.Limits = nil; return had }),
	"a server name less": onPublicPort(func(_ generator, p *publicPort) bool {
		had := p.ServerNames
		p.ServerNames = had[:len(had)/2]
		return had != nil
	}),
	"a server name more": onPublicPort(func(_ generator, p *publicPort) bool {
		p.ServerNames = append(p.ServerNames, "more.example.net")
		return len(p.ServerNames) > 1
	}),
	"strangers at all ingresses": onPublicPort(func(_ generator, p *publicPort) bool { had := p.Hosts != nil; p.Hosts = nil; return had }),
	"a path denied":              onRules(func(_ generator, r *publicRules) bool { r.Paths["/admin"] = &pathRule{Deny: true}; return true }),
	"a path for all":             onRules(func(_ generator, r *publicRules) bool { r.Paths["/admin"] = &pathRule{}; return true }),
	"a path within another": onRules(func(g generator, r *publicRules) bool {
		r.Paths["/admin/health"] = &pathRule{From: g.some(strange, 1)}
		return true
	}),
	"a path for everyone": onRules(func(_ generator, r *publicRules) bool {
		r.Paths["/admin/health"] = &pathRule{From: []string{"0.0.0.0/0", "::/0"}}
		return true
	}),
	"no paths":                 onRules(func(_ generator, r *publicRules) bool { had := len(r.Paths) > 0; r.Paths = nil; return had }),
	"a public name for others": onRules(func(g generator, r *publicRules) bool { r.From = g.some(strange, 3); return true }),
	"a public name for all":    onRules(func(_ generator, r *publicRules) bool { had := r.From != nil; r.From = nil; return had }),
	"a public name at all":     onRules(func(_ generator, r *publicRules) bool { had := r.Hosts != nil; r.Hosts = nil; return had }),
	"how an ingress carries":   onRules(func(_ generator, r *publicRules) bool { r.HSTS, r.MaxBody, r.Timeout = 7, 7, 7; return true }),
	"another redirect": func(_ generator, c *cluster) bool {
		for _, name := range sorted(c.Services) {
			if s := c.Services[name]; s.TLSName != "" {
				if c.Redirects == nil {
					c.Redirects = map[string]string{}
				}
				c.Redirects["more."+s.TLSName] = s.TLSName
				return true
			}
		}
		return false
	},
	"no redirects":                    func(_ generator, c *cluster) bool { had := len(c.Redirects) > 0; c.Redirects = nil; return had },
	"an address of an outside caller": onOutside(func(_ generator, o *outside) bool { o.Addresses = append(o.Addresses, "192.0.2.77"); return true }),
	"a network of an outside caller":  onOutside(func(_ generator, o *outside) bool { o.Addresses = []string{"192.0.2.0/24"}; return true }),
	"another outside caller": func(g generator, c *cluster) bool {
		g.outside(c, "o9x", "192.0.2.99")
		return c.Outside["o9x"] != nil
	},
	"no outside callers": func(_ generator, c *cluster) bool { had := len(c.Outside) > 0; c.Outside = nil; return had },
	"a host more":        func(g generator, c *cluster) bool { d, _ := g.withHost(c); *c = *d; return true },
	"a role less":        func(g generator, c *cluster) bool { *c = *g.withoutRole(c); return true },
	"a service less": func(g generator, c *cluster) bool {
		services := slices.Sorted(maps.Keys(c.Services))
		c.drop(services[g.IntN(len(services))])
		return true
	},
}

// drop removes a service, and its name everywhere.
func (c *cluster) drop(name string) {
	is := func(s string) bool { return s == name }
	maps.DeleteFunc(c.Redirects, func(_, to string) bool { return to == c.Services[name].TLSName })
	delete(c.Services, name)
	for _, o := range c.Outside {
		o.Reaches = slices.DeleteFunc(slices.Clone(o.Reaches), func(s string) bool { bare, _ := cutPort(s); return bare == name })
	}
	maps.DeleteFunc(c.Outside, func(_ string, o *outside) bool { return len(o.Reaches) == 0 })
	for _, r := range c.Roles {
		r.Services = slices.DeleteFunc(slices.Clone(r.Services), is)
	}
	for g, list := range c.ServiceGroups {
		c.ServiceGroups[g] = slices.DeleteFunc(slices.Clone(list), is)
	}
}

func pick[T any](g generator, set map[string]T) T {
	names := slices.Sorted(maps.Keys(set))
	return set[names[g.IntN(len(names))]]
}

func onService(edit func(generator, *service) bool) func(generator, *cluster) bool {
	return func(g generator, c *cluster) bool { return edit(g, pick(g, c.Services)) }
}

func onUser(edit func(generator, *holder) bool) func(generator, *cluster) bool {
	return func(g generator, c *cluster) bool { return len(c.Users) > 0 && edit(g, pick(g, c.Users)) }
}

func onSecret(edit func(generator, *cluster, *generated) bool) func(generator, *cluster) bool {
	return func(g generator, c *cluster) bool { return len(c.Secrets) > 0 && edit(g, c, pick(g, c.Secrets)) }
}

func onFile(edit func(*file)) func(generator, *cluster) bool {
	return func(g generator, c *cluster) bool {
		for _, name := range slices.Sorted(maps.Keys(c.Services)) {
			for _, f := range slices.Sorted(maps.Keys(c.Services[name].Files)) {
				changed := c.Services[name].Files[f]
				edit(&changed)
				c.Services[name].Files[f] = changed
				return true
			}
		}
		return false
	}
}

func onSSO(edit func(map[string]any)) func(generator, *cluster) bool {
	return func(g generator, c *cluster) bool {
		for _, name := range slices.Sorted(maps.Keys(c.Services)) {
			if sso := c.Services[name].SSO; sso != nil {
				edit(sso)
				return true
			}
		}
		return false
	}
}

func onPublicPort(edit func(generator, *publicPort) bool) func(generator, *cluster) bool {
	return func(g generator, c *cluster) bool {
		var all []*publicPort
		for _, name := range sorted(c.Services) {
			for _, port := range sorted(c.Services[name].PublicPorts) {
				all = append(all, c.Services[name].PublicPorts[port])
			}
		}
		g.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		return slices.ContainsFunc(all, func(p *publicPort) bool { return edit(g, p) })
	}
}

func onRules(edit func(generator, *publicRules) bool) func(generator, *cluster) bool {
	return func(g generator, c *cluster) bool {
		var all []*publicRules
		for _, name := range sorted(c.Services) {
			if r := c.Services[name].Ingress; r != nil {
				r.Paths = maps.Clone(r.Paths)
				if r.Paths == nil {
					r.Paths = map[string]*pathRule{}
				}
				all = append(all, r)
			}
		}
		g.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		return slices.ContainsFunc(all, func(r *publicRules) bool { return edit(g, r) })
	}
}

func onOutside(edit func(generator, *outside) bool) func(generator, *cluster) bool {
	return func(g generator, c *cluster) bool { return len(c.Outside) > 0 && edit(g, pick(g, c.Outside)) }
}

func onForeign(edit func(generator, *cluster, *federated) bool) func(generator, *cluster) bool {
	return func(g generator, c *cluster) bool {
		return c.Federated["blue"] != nil && edit(g, c, c.Federated["blue"])
	}
}

func onProvider(kind string, edit func(generator, *provider)) func(generator, *cluster) bool {
	return func(g generator, c *cluster) bool {
		p, ok := c.Providers[kind]
		edit(g, &p)
		c.Providers[kind] = p
		return ok
	}
}
