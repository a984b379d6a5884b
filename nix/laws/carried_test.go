package laws

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
)

// port returns the port that callers dial.
func (s *service) port() int {
	if s.ListenPort != 0 {
		return s.ListenPort
	}
	return s.Port
}

// TestCarried checks that both ends carry a service as the topology says, from the port that
// callers dial to the upstream.
func TestCarried(t *testing.T) {
	total := map[document.Protocol]int{}
	for _, s := range samples(t) {
		for c, docs := range map[*cluster]compiled{s.c: s.is, s.grown: s.more} {
			for host, m := range docs.manifests(t) {
				for _, p := range m.Forwarder.Publish {
					of := c.Services[p.ID.Name()].at(p.Port, p.Protocol)
					upstream := of.Upstream
					switch {
					case p.ID.Name() == spiffe.ControlService:
						upstream = "unix:/run/" + hostdir.Instance(c.Hosts[host].Instance).Unit("provider-config") + "/control.sock"
					case p.ID.Name() == spiffe.CacheService:
						upstream = "unix:/run/" + hostdir.Instance(c.Hosts[host].Instance).Unit("provider-config") + "/cache.sock"
					case upstream == "":
						upstream = fmt.Sprintf("127.0.0.1:%d", of.Port)
					}
					if p.Upstream != upstream || p.Protocol != of.carried() {
						t.Errorf("%s: %s carries %s to %s as %q, it is at %s as %q", s, host, p.ID, p.Upstream, p.Protocol, upstream, of.carried())
					}
					if want := written(of.Limits); p.Limits != want {
						t.Errorf("%s: limits of %s on %s are %+v, want %+v", s, p.ID, host, p.Limits, want)
					}
					if string(p.AccessLog) != of.AccessLog {
						t.Errorf("%s: %s logs %q of %s, want %q", s, host, p.AccessLog, p.ID, of.AccessLog)
					}
					if string(p.Identity) != of.Identity {
						t.Errorf("%s: %s learns callers by %q on %s, want %q", s, p.ID, p.Identity, host, of.Identity)
					}
				}
				for _, x := range m.Forwarder.Callers {
					if want := x.ID.Kind() == spiffe.KindService && c.Services[x.ID.Name()].Workload; x.Workload != want {
						t.Errorf("%s: %s lets callers of %s have its key: %v, want %v", s, host, x.ID, x.Workload, want)
					}
				}
				for _, l := range m.Forwarder.Limits {
					if !allows(m.Forwarder, l.ID) || l.Limits != written(c.Users[l.ID.Name()].Limits) {
						t.Errorf("%s: %s has %+v of %s", s, host, l.Limits, l.ID)
					}
				}
				for name, u := range c.Users {
					id := must(spiffe.ParseID("spiffe://laws.flor/user/" + name))
					is := func(l document.CallerLimits) bool { return l.ID == id }
					if u.Limits != nil && allows(m.Forwarder, id) && !slices.ContainsFunc(m.Forwarder.Limits, is) {
						t.Errorf("%s: %s does not have the limits of %s", s, host, id)
					}
				}
				for _, r := range m.Forwarder.Reach {
					of := c.Services[r.ID.Name()]
					if of != nil {
						of = of.at(r.Port, r.Protocol)
					}
					if f := c.elsewhere(r.ID.String()); f != nil {
						of = &service{Port: f.Port, Protocol: f.Protocol}
					}
					over := document.AnyTransport
					overTCP := func(h string) bool { return c.Hosts[h].Transport == "tcp" && (r.ID.Node() == "" || h == r.ID.Node()) }
					if of.Transport == "tcp" || c.Hosts[host].Transport == "tcp" || slices.ContainsFunc(of.on(), overTCP) {
						over = document.OverTCP
					}
					if r.Transport != over {
						t.Errorf("%s: %s reaches %s over %q, want %q", s, host, r.ID, r.Transport, over)
					}
					if int(r.Listen.Port()) != of.port() || r.Protocol != of.carried() {
						t.Errorf("%s: %s takes %s at %s as %q, it is %q", s, host, r.ID, r.Listen, r.Protocol, of.carried())
					}
					total[r.Protocol]++
				}
			}
		}
	}
	if total[document.TCP] < len(samples(t)) || total[document.UDP] < len(samples(t)) {
		t.Errorf("only %v listeners in all", total)
	}
}

// written returns limits, or zero limits for nil.
func written(l *document.Limits) document.Limits {
	if l == nil {
		return document.Limits{}
	}
	return *l
}

// allows reports whether a caller may reach any service that the forwarder publishes.
func allows(f document.Forwarder, caller spiffe.ID) bool {
	return slices.ContainsFunc(f.Publish, func(p document.Published) bool {
		return slices.ContainsFunc(p.Allow, func(a document.Allow) bool { return a.ID == caller })
	})
}

func (s *service) carried() document.Protocol {
	if s.Protocol == "udp" {
		return document.UDP
	}
	return document.TCP
}

// TestGeneratesEverything checks that the generated topologies use every attribute of the language.
func TestGeneratesEverything(t *testing.T) {
	count := map[string]int{}
	see := func(what string, is bool) {
		if is {
			count[what]++
		} else {
			count[what] += 0
		}
	}
	for _, s := range samples(t) {
		c := s.c
		for name, h := range c.Hosts {
			has := c.all(h)
			see("a host without address", h.Address == "")
			see("a network", h.Networks != nil)
			see("a host over TCP alone", h.Transport == "tcp")
			see("an address to listen on", h.Bind != "")
			see("an IPv6 address", strings.Contains(h.Address, ":"))
			see("a further instance", h.Instance != "")
			see("a host that joins", h.SSHHostKey == "")
			see("documents with the system", h.Deploy != "" && c.Providers["config"].Hosts != nil)
			see("roles of a group of hosts", len(has.Roles) > len(h.Roles))
			see("users of a group of hosts", len(has.Users) > len(h.Users))
			see("callers of users", len(h.Callers) > 1)
			see("a fact of a host", h.Facts != nil)
			see("a weight", h.Weight > 1)
			see("a capacity", h.Capacity > 0)
			see("an ingress", slices.Contains(has.Capabilities, "ingress"))
			see("a host that nothing runs on", len(c.runs(name)) == 0)
			see("a relay", h.Relay)
			see("a relay that some hosts do not call", h.Relay && h.Address == "")
			see("a hidden host", h.Hidden)
			see("a host without an address that is called", h.Address == "" && len(c.uplinks(name)) > 0)
			see("a host with the relays of its group", h.Relays == nil && len(c.uplinks(name)) > 0)
			see("a host with two of several relays", len(h.Relays) > 2 && len(c.uplinks(name)) == 2)
		}
		for _, v := range c.Services {
			see("a Unix socket", strings.HasPrefix(v.Upstream, "unix:"))
			see("something outside", strings.HasPrefix(v.Upstream, "203."))
			see("a port of its own for callers", v.ListenPort != 0 && v.Port != 0)
			see("a fact of a service", v.Facts != nil)
			see("limits", v.Limits != nil)
			see("several ports", v.Ports != nil)
			see("several ports of one service for each host", v.Ports != nil && v.Scope != "")
			see("datagrams", v.Protocol == "udp")
			see("a service over TCP alone", v.Transport == "tcp")
			see("a service with a role up to a time", v.Until != nil)
			see("connections logged", v.AccessLog != "")
			see("its certificate for its account", v.Workload)
			see("tokens for audiences", v.Audiences != nil)
			see("callers in a header before the bytes", v.Identity == "proxy-v2")
			see("callers in headers of requests", v.Identity == "http")
			see("datagrams of one service for each host", v.Protocol == "udp" && v.Scope != "")
			see("a service of two names", v.Scope == "both" && len(v.on()) > 1)
			see("a public name of several hosts", v.TLSName != "" && len(v.on()) > 1)
			see("an alias", len(v.Aliases) > 0)
			see("an alias of a service of two names", len(v.Aliases) > 0 && v.Scope == "both")
			see("another public name", len(v.TLSAliases) > 0)
			see("a service that speaks gRPC", v.GRPC)
			see("a hidden service with roles", v.Visibility == "host" && len(v.Roles) > 0)
			see("a service that reaches others from several hosts", len(v.Roles) > 0 && len(v.on()) > 1)
			see("sso on several hosts", v.SSO != nil && len(v.on()) > 1)
			see("a need of the cluster's own", v.Needs["mail"].Kind != "")
			see("a rotation of its secret", v.Needs["mail"].Rotate > 0)
			see("a need that an HTTP service answers", v.Needs["labels"].Kind != "")
			see("a database of PostgreSQL", v.Databases["main"].On != "")
			see("a login that rotates", v.Databases["main"].Rotate > 0)
			see("a database of Redis", v.Databases["sessions"].On != "")
			see("a database on several hosts", v.Databases != nil && len(v.on()) > 1)
			see("a token of Soft Serve", v.Git["pull"].On != "")
			see("a token that pushes", v.Git["pull"].Access == "write")
			see("a token of Forgejo", v.Git["more"].On != "")
			see("a token on several hosts", v.Git != nil && len(v.on()) > 1)
			see("files that wait for others", v.Files["config"].After != nil)
			see("replicas near others", v.Placement != nil && v.Placement.Near != nil)
			see("replicas in a group", v.Placement != nil && v.Placement.Group != "")
			if p := v.Placement; p != nil {
				see("replicas apart from a service", p.Apart != nil)
				see("replicas apart by group", p.ApartByGroup != nil)
				see("replicas over groups", p.Spread == "even")
				see("replicas of one per group", p.Spread == "one-per-group")
				see("a pin", p.Pins != nil)
				see("a size", p.Size > 1)
			}
		}
		for _, kind := range []string{"cert", "config"} { // other kinds on several hosts need a shared store
			see("several providers of "+kind, len(c.Providers[kind].Hosts) > 1)
		}
		for _, v := range c.Secrets {
			see("a secret of form "+v.Generate, true)
			see("a secret of another length", v.Length > 0)
			see("a secret that rotates", v.Rotate > 0)
			see("a secret of several readers", len(v.Readers) > 1)
			for _, r := range v.Readers {
				see("a reader that holds two", r.Overlap)
				see("a host that reads a secret", r.Host != "")
				see("readers on several hosts", r.Service != "" && len(c.Services[r.Service].on()) > 1)
			}
		}
		for _, v := range c.Tenants {
			see("an issuer of a tenant", len(v.Issuers) > 0)
			see("a policy of a tenant", len(v.Policies) > 0)
			see("a grouping of a tenant", len(v.Groupings) > 0)
		}
		for _, v := range c.Services {
			see("a token of a tenant", len(v.Tokens) > 0)
			see("a service that verifies tokens", len(v.Verifies) > 0)
		}
		for _, f := range c.Federated {
			see("an identity of a foreign trust domain", len(f.Identities) > 0)
			see("a service of one", len(f.Services["h72x/s73x"].Roles) > 0)
		}
		for _, e := range c.Clusters {
			see("an identity of another cluster", len(e.Identities) > 0)
			see("a service of another cluster", len(e.Services["h82x/s83x"].Roles) > 0)
		}
		see("certificates for public names", c.Providers["tls"].Hosts != nil)
		see("a wildcard", c.Providers["tls"].Wild != nil)
		see("a group that names one host's own", slices.ContainsFunc(c.ServiceGroups["g9x"], isPart))
		see("a rollout", c.Rollout != nil)
		see("a rollout with windows", c.Rollout != nil && c.Rollout.Maintenance != nil)
		see("a rollout with budgets", c.Rollout != nil && c.Rollout.AtOnce != nil)
		see("a rollout with budgets and no waves", c.Rollout != nil && c.Rollout.AtOnce != nil && c.Rollout.Waves == nil)
		see("a store that providers share", c.Providers["store"].Hosts != nil)
		see("a state that moves into it", c.Providers["store"].From != nil)
		see("a provider that requires", c.Providers["cert"].Requires != nil)
		for _, of := range c.Teams {
			see("a team with a role up to a time", of.Until != nil)
			see("a member up to a time", len(of.UsersUntil) > 0)
			see("a team with a team in it", len(of.Teams) > 0)
		}
		for _, r := range c.Roles {
			see("a role that requires", len(r.Requires) > 0)
			see("a role with groups", len(r.ServiceGroups) > 0)
			see("a role with exceptions", len(r.Except) > 0)
			see("a role that excepts a port", slices.ContainsFunc(r.Except, isPort))
			see("a role that names a port", slices.ContainsFunc(r.Services, isPort))
			see("a role that excepts one host's own", slices.ContainsFunc(r.Except, isPart))
			see("a role that names one host's own", slices.ContainsFunc(r.Services, isPart))
			see("a role that names a service of another cluster", slices.Contains(r.Services, "s72x@blue"))
			see("a role with a role in it that has another", slices.ContainsFunc(r.Roles, func(in string) bool { return len(c.Roles[in].Roles) > 0 }))
		}
	}
	for what, n := range count {
		if n < 3 {
			t.Errorf("%s: only %d in %d topologies", what, n, len(samples(t)))
		}
	}
}

func isPort(name string) bool { _, port := cutPort(name); return port != "" }

func isPart(name string) bool { return strings.Contains(name, "@") }
