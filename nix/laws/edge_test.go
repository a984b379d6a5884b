package laws

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/nix/operator/explain"
)

// publicPort is a public port of a service.
type publicPort struct {
	Port        int              `json:"port"`
	Hosts       []string         `json:"hosts,omitempty"`
	ServerNames []string         `json:"serverNames,omitempty"`
	From        []string         `json:"from,omitempty"`
	Limits      *document.Limits `json:"limits,omitempty"`
}

// publicRules contains the rules of an ingress for the public names of a service.
type publicRules struct {
	Hosts   []string             `json:"hosts,omitempty"`
	From    []string             `json:"from,omitempty"`
	Paths   map[string]*pathRule `json:"paths,omitempty"`
	HSTS    int                  `json:"hsts,omitempty"`
	MaxBody int                  `json:"maxBody,omitempty"`
	Timeout int                  `json:"timeout,omitempty"`
}

type pathRule struct {
	Deny bool     `json:"deny,omitempty"`
	From []string `json:"from,omitempty"`
	Port string   `json:"port,omitempty"`
}

// outside is a caller without an agent.
type outside struct {
	Addresses []string `json:"addresses,omitempty"`
	MTLS      bool     `json:"mtls,omitempty"`
	Via       string   `json:"via"`
	Reaches   []string `json:"reaches"`
}

// strange lists the networks of strangers. Outside callers have addresses in 192.0.2.0/24.
var strange = []string{"198.51.100.0/24", "198.51.100.128/25", "2001:db8:5::/48", "100.64.7.7"}

// outsideRole is the prefix of the role by which a node connects outside callers.
const outsideRole = spiffe.ReservedPrefix + "outside-"

// role returns a role by its name, including the roles that the compiler adds for outside callers.
func (c *cluster) role(name string) *role {
	if of, is := strings.CutPrefix(name, outsideRole); is {
		return &role{Services: c.Outside[of].Reaches}
	}
	return c.Roles[name]
}

// outsideOn returns the outside callers that a host connects.
func (c *cluster) outsideOn(host string) (names []string) {
	for _, name := range sorted(c.Outside) {
		if c.Outside[name].Via == host {
			names = append(names, name)
		}
	}
	return names
}

// nodeReaches reports whether the node of a host reaches the ID that all hosts of a service share,
// at a port, which is empty for a service with one port.
func (c *cluster) nodeReaches(host, service, port string) bool {
	s := c.Services[service]
	id := strings.TrimSuffix("spiffe://laws.flor/service/"+service+":"+port, ":")
	held := append([]string{"node"}, c.all(c.Hosts[host]).Roles...)
	for _, name := range c.outsideOn(host) {
		held = append(held, outsideRole+name)
	}
	return slices.ContainsFunc(s.on(), func(on string) bool {
		return slices.ContainsFunc(held, func(r string) bool { return c.may(r, service, on, id) })
	})
}

// entrances returns the hosts that listen at a public port of a service if the public port does not
// name hosts.
func (c *cluster) entrances(service, port string) (hosts []string) {
	for _, name := range sorted(c.Hosts) {
		if slices.Contains(c.all(c.Hosts[name]).Capabilities, "ingress") && c.nodeReaches(name, service, port) {
			hosts = append(hosts, name)
		}
	}
	return hosts
}

// target returns the port of a service to which a public port leads.
func (s *service) target(public string) string {
	if s.Ports == nil {
		return ""
	}
	return public
}

// serves returns the hosts that serve the public names of a service.
func (c *cluster) serves(service string) []string {
	hosts, rules := c.ingress(service), c.Services[service].Ingress
	return slices.DeleteFunc(hosts, func(h string) bool {
		return rules != nil && len(rules.Hosts) > 0 && !slices.Contains(rules.Hosts, h)
	})
}

// edge adds outside callers, public ports, rules for public names, and redirects. It does not use
// the generator's random numbers, so that the rest of the topology does not change.
func (c *cluster) edge() {
	g := generator{rand.New(rand.NewPCG(uint64(len(c.Services)), uint64(len(c.Users)+10*len(c.Hosts))))}
	c.Outside, c.Redirects = map[string]*outside{}, map[string]string{}
	for i := range g.IntN(3) {
		g.outside(c, fmt.Sprintf("o%dx", i), fmt.Sprintf("192.0.2.%d", i+1))
	}
	c.prove()
	c.publishAbroad()
	for i, name := range sorted(c.Services) {
		s := c.Services[name]
		if s.Visibility != "public" {
			continue
		}
		if s.Scope != "node" && g.IntN(3) > 0 {
			g.publicPorts(c, i, name)
		}
		if s.TLSName != "" && g.IntN(3) > 0 {
			g.rules(c, name)
		}
		if s.TLSName != "" && g.IntN(2) == 0 {
			c.Redirects["www-"+s.TLSName] = s.TLSName
		}
	}
}

// outside adds a caller without an agent, if a service is free on a host for it.
func (g generator) outside(c *cluster, name, address string) {
	hosts := sorted(c.Hosts)
	via := hosts[g.IntN(len(hosts))]
	o := &outside{Addresses: []string{address}, Via: via}
	for _, s := range g.some(sorted(c.Services), 3) {
		v := c.Services[s]
		if v.Visibility == "host" || v.Replicas != nil || slices.Contains(v.on(), via) {
			continue
		}
		if v.Ports != nil && g.IntN(2) == 0 {
			s += ":" + sorted(v.Ports)[g.IntN(len(v.Ports))]
		}
		o.Reaches = append(o.Reaches, s)
	}
	if g.IntN(2) == 0 {
		o.Addresses = append(o.Addresses, address+"1/32")
	}
	if len(o.Reaches) > 0 {
		if c.Outside == nil {
			c.Outside = map[string]*outside{}
		}
		c.Outside[name] = o
	}
}

// prove has some outside callers prove their identity with certificates, with or without addresses.
// It draws no random numbers, so that the rest of the topology does not change.
func (c *cluster) prove() {
	for i, name := range sorted(c.Outside) {
		o, which := c.Outside[name], (len(c.Services)+i)%4
		if which == 0 || c.overUDP(o) {
			continue
		}
		o.MTLS = true
		// With an address, a host tells the caller from those that have no certificate.
		if alone := len(c.outsideOn(o.Via)) == 1; alone && which == 2 {
			o.Addresses = nil
		}
	}
}

// overUDP reports whether an outside caller reaches a port over UDP, where it cannot prove anything.
func (c *cluster) overUDP(o *outside) bool {
	return slices.ContainsFunc(o.Reaches, func(reached string) bool {
		name, port := cutPort(reached)
		s := c.Services[name]
		for of, p := range s.Ports {
			if (port == "" || port == of) && slices.Contains(p.Protocol, "udp") {
				return true
			}
		}
		return s.Ports == nil && s.carried() == document.UDP
	})
}

// publicPorts gives a service a public port for each of some of its ports.
func (g generator) publicPorts(c *cluster, i int, name string) {
	s := c.Services[name]
	s.PublicPorts = map[string]*publicPort{}
	public := []string{"smtp"}
	if s.Ports != nil {
		public = g.some(sorted(s.Ports), 2)
	}
	for n, port := range public {
		hosts := c.entrances(name, s.target(port))
		if len(hosts) == 0 {
			continue
		}
		p := &publicPort{Port: 3000 + 10*i + n}
		if g.IntN(2) == 0 {
			p.From = g.some(strange, 2)
		}
		if g.IntN(2) == 0 {
			p.Hosts = hosts[:1+g.IntN(len(hosts))]
		}
		if s.Protocol != "udp" && port != "dns" && g.IntN(2) == 0 {
			p.Port, p.ServerNames = 3999, []string{port + "." + name + ".example.net", "b." + port + "." + name + ".example.net"}
		}
		if g.IntN(2) == 0 {
			p.Limits = g.limits()
		}
		s.PublicPorts[port] = p
	}
}

// rules adds rules for the public names of a service.
func (g generator) rules(c *cluster, name string) {
	s := c.Services[name]
	r := &publicRules{From: g.some(strange, g.IntN(3)), HSTS: g.IntN(3), MaxBody: g.IntN(3), Timeout: g.IntN(3)}
	if hosts := c.serves(name); g.IntN(3) == 0 {
		slices.Sort(hosts)
		r.Hosts = slices.Compact(hosts)[:1]
	}
	r.Paths = map[string]*pathRule{}
	for _, path := range g.some([]string{"/", "/admin", "/admin/health", "/metrics", "/ws"}, 4) {
		r.Paths[path] = []*pathRule{{}, {Deny: true}, {From: g.some(strange, 2)}}[g.IntN(3)]
	}
	s.Ingress = r
	if s.Ports != nil && c.allReach(name, "metrics") {
		r.Paths["/meter"] = &pathRule{Port: "metrics", From: g.some(strange, 1)}
	}
}

// allReach reports whether all hosts that serve the public names of a service reach a port of it.
func (c *cluster) allReach(service, port string) bool {
	return !slices.ContainsFunc(c.serves(service), func(host string) bool {
		reaches := func(p principal) bool {
			return p.host == host && slices.ContainsFunc(p.roles, func(r string) bool {
				s := c.Services[service]
				return slices.ContainsFunc(s.on(), func(on string) bool {
					ids := s.ids(service, on)
					return c.may(r, service, on, ids[len(ids)-1]+":"+port)
				})
			})
		}
		return !slices.ContainsFunc(c.principals(), reaches)
	})
}

// withdrawEdge takes out what strangers no longer reach of a public service, because it would be a
// fault.
func (c *cluster) withdrawEdge(name string) {
	s := c.Services[name]
	if s.Ingress != nil && len(c.serves(name)) == 0 {
		s.private(c)
		return
	}
	for port, p := range s.PublicPorts {
		hosts := c.entrances(name, s.target(port))
		if len(hosts) == 0 || slices.ContainsFunc(p.Hosts, func(h string) bool { return !slices.Contains(hosts, h) }) {
			delete(s.PublicPorts, port)
		}
	}
	if s.Ingress == nil {
		return
	}
	for _, p := range s.Ingress.Paths {
		if p.Port != "" && !c.allReach(name, p.Port) {
			*p = pathRule{Deny: true}
		}
	}
}

// private makes a public service internal.
func (s *service) private(c *cluster) {
	maps.DeleteFunc(c.Redirects, func(_, to string) bool { return to == s.TLSName })
	s.Visibility, s.TLSName, s.TLSAliases, s.GRPC, s.PublicPorts, s.Ingress = "", "", nil, false, nil, nil
}

// entryOf describes an entry of a manifest.
func entryOf(e document.Entry) string {
	b, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// networks returns networks as they are in documents.
func networks(written []string) (all []netip.Prefix) {
	text := []string{}
	for _, w := range written {
		switch {
		case strings.Contains(w, "/"):
		case strings.Contains(w, ":"):
			w += "/128"
		default:
			w += "/32"
		}
		text = append(text, w)
	}
	slices.Sort(text)
	for _, w := range slices.Compact(text) {
		all = append(all, netip.MustParsePrefix(w))
	}
	return all
}

// entries returns the entries that the manifest of a host must have.
func (c *cluster) entries(host string) (all []string) {
	h := c.Hosts[host]
	add := func(service, port string, id spiffe.ID, at int, e document.Entry) {
		s := c.Services[service]
		protocols := []document.Protocol{s.carried()}
		if s.Ports != nil {
			protocols = []document.Protocol{document.TCP}
			if slices.Contains(s.Ports[port].Protocol, "udp") {
				protocols = append(protocols, document.UDP)
			}
		}
		for _, e.Protocol = range protocols {
			e.ID, e.Port, e.AccessLog = id, port, document.AccessLog(s.AccessLog)
			e.Announce = s.at(port, e.Protocol).Identity != ""
			e.Listen = fmt.Sprintf(":%d", at)
			if h.Bind != "" {
				e.Listen = net.JoinHostPort(h.Bind, strconv.Itoa(at))
			}
			all = append(all, entryOf(e))
		}
	}
	for name, s := range c.Services {
		for public, p := range s.PublicPorts {
			port := s.target(public)
			if slices.Contains(c.entrances(name, port), host) && (len(p.Hosts) == 0 || slices.Contains(p.Hosts, host)) {
				names := slices.Sorted(slices.Values(p.ServerNames))
				add(name, port, must(spiffe.ParseID("spiffe://laws.flor/service/"+name)), p.Port, document.Entry{ServerNames: names, From: networks(p.From), Limits: written(p.Limits)})
			}
		}
	}
	for _, caller := range c.outsideOn(host) {
		o := c.Outside[caller]
		seen := map[string]bool{}
		for name, s := range c.Services {
			for _, on := range s.on() {
				for _, at := range s.faces(name, on) {
					if id, port := cutPort(at); !seen[at] && c.may(outsideRole+caller, name, on, at) {
						seen[at] = true
						e := document.Entry{From: networks(o.Addresses), Outside: caller}
						if o.MTLS {
							e.Caller = must(spiffe.ParseID("spiffe://laws.flor/outside/" + caller))
						}
						add(name, port, must(spiffe.ParseID(id)), s.at(port, document.TCP).port(), e)
					}
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

// TestEntriesAreWritten checks that exactly the hosts that the topology says listen for strangers
// and outside callers, that entries for some callers come before those for all, and that services
// believe exactly these hosts what address a caller has. Explain names the same outside callers, and
// what they prove.
func TestEntriesAreWritten(t *testing.T) {
	public, callers, proven, stated := 0, 0, 0, 0
	for _, s := range samples(t) {
		for c, docs := range map[*cluster]compiled{s.c: s.is, s.grown: s.more, s.narrower: s.less} {
			manifests := docs.manifests(t)
			states := map[string]map[string]bool{} // by face, the nodes with an entry
			told, written := map[string]bool{}, map[string]bool{}
			a := explain.New(docs.Topology)
			for name := range docs.Topology.Services {
				for _, e := range a.WhoCan(name).Entries {
					for _, protocol := range e.Protocols {
						if e.Outside != "" {
							told[fmt.Sprint(e.Host, name, e.Of, e.Port, protocol, e.From, e.Outside, e.Caller)] = true
						}
					}
				}
			}
			for host, m := range manifests {
				var got []string
				for i, e := range m.Forwarder.Entries {
					got = append(got, entryOf(e))
					for _, after := range m.Forwarder.Entries[i+1:] {
						if after.Listen == e.Listen && after.Protocol == e.Protocol && len(after.ServerNames) > 0 && len(e.ServerNames) == 0 {
							t.Errorf("%s: on %s, an entry for all names comes before the one for %v", s, host, after.ServerNames)
						}
					}
					if e.Outside == "" {
						public++
					} else {
						callers++
						at := must(netip.ParseAddrPort("[::]" + e.Listen[strings.LastIndex(e.Listen, ":"):]))
						written[fmt.Sprint(host, e.ID.Name(), e.Port, at.Port(), cmp.Or(string(e.Protocol), "tcp"), c.Outside[e.Outside].Addresses, e.Outside, e.Caller)] = true
					}
					if !e.Caller.IsZero() {
						proven++
					}
					if at := face(e.ID, e.Port); e.Announce {
						if states[at] == nil {
							states[at] = map[string]bool{}
						}
						states[at][m.Identity.ID.String()] = true
					}
				}
				slices.Sort(got)
				if want := c.entries(host); !slices.Equal(got, want) {
					t.Errorf("%s: %s has the entries\n%s\nwant\n%s", s, host, strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			}
			if !maps.Equal(told, written) {
				t.Errorf("%s: explain tells of %v, want %v", s, sorted(told), sorted(written))
			}
			for host, m := range manifests {
				for _, p := range m.Forwarder.Publish {
					for _, id := range p.Entrances {
						stated++
						if !states[face(p.ID, p.Port)][id.String()] && p.ID.Node() == "" && c.Services[p.ID.Name()].Scope == "" {
							t.Errorf("%s: %s lets %s state addresses to %s, and that has no entry for it", s, host, id, face(p.ID, p.Port))
						}
					}
					for id := range states[face(p.ID, p.Port)] {
						if !slices.ContainsFunc(p.Entrances, func(e spiffe.ID) bool { return e.String() == id }) {
							t.Errorf("%s: %s does not believe %s the addresses of callers of %s", s, host, id, face(p.ID, p.Port))
						}
					}
				}
			}
		}
	}
	if public < *count || callers < *count/4 || proven < *count/8 || stated < *count/8 {
		t.Errorf("only %d entries for strangers, %d for outside callers, %d of these with certificates, %d nodes that state addresses", public, callers, proven, stated)
	}
}

// document returns the rules as an ingress must get them.
func (w *publicRules) document() (r document.PublicRules) {
	if w == nil {
		return r
	}
	r = document.PublicRules{From: networks(w.From), HSTS: w.HSTS, MaxBody: w.MaxBody, Timeout: w.Timeout}
	for _, path := range sorted(w.Paths) {
		p := w.Paths[path]
		r.Paths = append(r.Paths, document.PathRule{Path: path, Deny: p.Deny, From: networks(p.From), Port: p.Port})
	}
	return r
}

// TestIngressRulesAreWritten checks that exactly the hosts that serve a public name get its rules
// and its redirects, and that they get certificates for all names, redirected ones included. The
// names may be those of services of other clusters.
func TestIngressRulesAreWritten(t *testing.T) {
	rules, abroad, redirects, certificates := 0, 0, 0, 0
	for _, s := range samples(t) {
		for c, docs := range map[*cluster]compiled{s.c: s.is, s.grown: s.more, s.narrower: s.less} {
			for host, m := range docs.manifests(t) {
				var certified []string
				for _, n := range m.Needs {
					var request struct{ Names []string }
					if err := json.Unmarshal(n.Request, &request); n.Kind == "tls" && err == nil {
						certified = append(certified, request.Names...)
					}
				}
				served := []string{} // names of services of other clusters
				for _, r := range m.Forwarder.Reach {
					service := c.Services[r.ID.Name()]
					if foreign := c.elsewhere(r.ID.String()); foreign != nil && r.TLSName != "" {
						abroad++
						served = append(served, r.TLSName)
						if got, want := string(must(json.Marshal(r.Ingress))), string(must(json.Marshal(foreign.Ingress.document()))); got != want || r.TLSName != foreign.TLSName {
							t.Errorf("%s: on %s, the rules of %s are %s, want %s of %s", s, host, r.TLSName, got, want, foreign.TLSName)
						}
						if c.Providers["tls"].Hosts != nil && !slices.ContainsFunc(certified, func(n string) bool { return n == r.TLSName || document.Covers(n, r.TLSName) }) {
							t.Errorf("%s: %s has no certificate for %s", s, host, r.TLSName)
						}
						continue
					}
					if service == nil || r.TLSName == "" {
						if !r.Ingress.IsZero() || r.Redirects != nil {
							t.Errorf("%s: %s has rules for strangers of %s, which has no name there", s, host, r.ID)
						}
						continue
					}
					if !slices.Contains(c.serves(r.ID.Name()), host) {
						t.Errorf("%s: %s serves %s", s, host, r.TLSName)
					}
					if got, want := string(must(json.Marshal(r.Ingress))), string(must(json.Marshal(service.Ingress.document()))); got != want {
						t.Errorf("%s: on %s, the rules of %s are %s, want %s", s, host, r.TLSName, got, want)
					}
					want := map[string]string{}
					for from, to := range c.Redirects {
						if to == service.TLSName {
							want[from] = to
						}
					}
					if !maps.Equal(r.Redirects, want) {
						t.Errorf("%s: on %s, to %s are redirected %v, want %v", s, host, r.TLSName, r.Redirects, want)
					}
					if !r.Ingress.IsZero() {
						rules++
					}
					redirects += len(want)
					if c.Providers["tls"].Hosts == nil {
						continue
					}
					for _, name := range slices.Concat([]string{r.TLSName}, r.TLSAliases, sorted(r.Redirects)) {
						certificates++
						if !slices.ContainsFunc(certified, func(n string) bool { return n == name || document.Covers(n, name) }) {
							t.Errorf("%s: %s has no certificate for %s", s, host, name)
						}
					}
				}
				if want := c.namesAbroad(host); !slices.Equal(slices.Sorted(slices.Values(served)), slices.Sorted(slices.Values(want))) {
					t.Errorf("%s: %s serves %v of other clusters, want %v", s, host, served, want)
				}
			}
		}
	}
	if rules < *count/2 || abroad < *count/4 || redirects < *count/4 || certificates < *count/4 {
		t.Errorf("only %d services with rules, %d names of services of other clusters, %d redirects, %d certificates", rules, abroad, redirects, certificates)
	}
}
