package laws

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
)

// relays makes some hosts relays, and others reachable through them: beside their addresses, instead
// of them, or hidden.
func (g generator) relays(c *cluster) {
	if g.IntN(3) == 0 {
		return
	}
	if g.IntN(2) == 0 {
		c.PathSalt = fmt.Sprintf("salt-%016x", g.Uint64())
	}
	hosts := slices.Sorted(maps.Keys(c.Hosts))
	provides := func(name string) bool {
		for _, p := range c.Providers {
			if slices.Contains(p.Hosts, name) {
				return true
			}
		}
		return false
	}
	// Providers first: they cannot be hidden.
	var relays []string
	candidates := slices.Clone(hosts)
	slices.SortStableFunc(candidates, func(a, b string) int { return cmp.Compare(btoi(provides(b)), btoi(provides(a))) })
	for _, name := range candidates[:min(len(hosts), 1+g.IntN(4))] {
		if h := c.Hosts[name]; h.Address != "" {
			h.Relay = true
			relays = append(relays, name)
		}
	}
	if len(relays) == 0 {
		return
	}
	// Every host calls the first relay, and some call another one only through that.
	if g.IntN(2) == 0 {
		const inner = "h98x"
		c.Hosts[inner] = g.host(c, 24, nil, nil)
		h := c.Hosts[inner]
		h.Relay, h.Relays, h.Kind = true, relays[:1], "device"
		h.Address, h.Bind = "", ""
		relays = append(relays, inner)
		for i, on := range append(hosts, inner) {
			if on == relays[0] || on == inner || g.IntN(3) == 0 {
				c.Hosts[on].Networks = maps.Clone(c.Hosts[on].Networks)
				if c.Hosts[on].Networks == nil {
					c.Hosts[on].Networks = map[string]string{}
				}
				c.Hosts[on].Networks["shed"] = fmt.Sprintf("10.8.7.%d", i+1)
			}
		}
	}
	for _, name := range hosts {
		h := c.Hosts[name]
		called := slices.DeleteFunc(slices.Clone(relays), func(r string) bool { return r == name || len(c.calls(name, r)) == 0 })
		free := !h.Relay && !provides(name)
		if len(called) == 0 || h.Relays != nil || !free && g.IntN(2) == 0 || g.IntN(6) == 0 {
			continue
		}
		h.Relays = append(g.some(called, 3), called[g.IntN(len(called))])
		slices.Sort(h.Relays)
		h.Relays = slices.Compact(h.Relays)
		switch {
		case free && g.IntN(2) == 0:
			h.Hidden = true
			c.PathSalt = cmp.Or(c.PathSalt, "a-salt-for-hidden-hosts")
		case free:
			h.Address, h.Bind = "", ""
		}
	}
	for _, path := range slices.Sorted(maps.Keys(c.HostGroups)) {
		if g.IntN(2) == 0 {
			c.HostGroups[path].Relays = relays[:1]
		}
	}
}

// uplinks returns the relays to which a host keeps a connection: the two with the highest hashes of
// those that it calls, if it publishes a service.
func (c *cluster) uplinks(name string) []string {
	h := c.Hosts[name]
	if !slices.ContainsFunc(c.runs(name), func(s string) bool { return c.Services[s].Visibility != "host" }) {
		return nil
	}
	relays := h.Relays
	if len(relays) == 0 {
		longest := ""
		for path, group := range c.HostGroups {
			if (path == h.Group || strings.HasPrefix(h.Group, path+"/")) && len(group.Relays) > 0 && len(path) > len(longest) {
				longest, relays = path, group.Relays
			}
		}
	}
	relays = slices.DeleteFunc(slices.Clone(relays), func(r string) bool { return r == name || !c.Hosts[r].Relay || len(c.calls(name, r)) == 0 })
	rank := func(r string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(name+" "+r))) }
	slices.SortFunc(relays, func(a, b string) int { return cmp.Compare(rank(b), rank(a)) })
	relays = relays[:min(len(relays), 2)]
	slices.Sort(relays)
	return relays
}

// paths returns the paths from one host to another through one relay or two, in order.
func (c *cluster) paths(from, to string) (all [][]string) {
	if from == to {
		return nil
	}
	own := c.uplinks(from)
	for _, last := range c.uplinks(to) {
		if len(c.calls(from, last)) > 0 {
			all = append(all, []string{last})
			continue
		}
		var first []string
		for _, r := range slices.Sorted(maps.Keys(c.Hosts)) {
			if c.Hosts[r].Relay && r != last && r != to && len(c.calls(from, r)) > 0 && len(c.calls(r, last)) > 0 {
				first = append(first, r)
			}
		}
		slices.SortStableFunc(first, func(a, b string) int {
			return cmp.Compare(btoi(!slices.Contains(own, a)), btoi(!slices.Contains(own, b)))
		})
		for _, r := range first[:min(len(first), 2)] {
			all = append(all, []string{r, last})
		}
	}
	slices.SortFunc(all, slices.Compare)
	return all
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// hop is a path from a caller to a host whose services it reaches.
type hop struct {
	from, to string
	by       []string
}

// hops returns all paths in manifests.
func (c *cluster) hops(reach map[pair]bool) (all []hop) {
	seen := map[pair]bool{}
	for _, p := range c.principals() {
		for name, s := range c.Services {
			for _, to := range s.on() {
				if seen[pair{p.host, to}] || !slices.ContainsFunc(s.faces(name, to), func(id string) bool { return reach[pair{p.id, id}] }) {
					continue
				}
				seen[pair{p.host, to}] = true
				for _, by := range c.paths(p.host, to) {
					all = append(all, hop{p.host, to, by})
				}
			}
		}
	}
	return all
}

// relaysOf returns the relays that a host must know: its uplinks, the relays of its paths, and as a
// relay those after it on the paths of others.
func (c *cluster) relaysOf(name string, reach map[pair]bool) map[string]bool {
	relays := map[string]bool{}
	for _, r := range c.uplinks(name) {
		relays[r] = true
	}
	for _, h := range c.hops(reach) {
		if h.from == name || h.by[0] == name {
			for _, r := range h.by {
				relays[r] = true
			}
		}
	}
	return relays
}

// relayedBy returns the hosts that a relay must know: those that keep a connection to it or call it
// on a path, and other relays on such paths.
func (c *cluster) relayedBy(name string, reach map[pair]bool) map[string]bool {
	hosts := map[string]bool{}
	for _, h := range c.hops(reach) {
		switch i := slices.Index(h.by, name); {
		case i == 0 && len(h.by) == 1:
			hosts[h.from], hosts[h.to] = true, true
		case i == 0:
			hosts[h.from], hosts[h.by[1]] = true, true
		case i == 1:
			hosts[h.by[0]], hosts[h.to] = true, true
		}
	}
	return hosts
}

// isOnPath reports whether a host is a relay on a path that begins or ends at another host.
func (c *cluster) isOnPath(relay, end string, reach map[pair]bool) bool {
	return slices.ContainsFunc(c.hops(reach), func(h hop) bool {
		return (h.from == end || h.to == end) && slices.Contains(h.by, relay)
	})
}

// TestPaths checks that manifests have the paths that the rules give, with labels that lead to the
// host of the service: each is a route of the first relay, which the caller may use.
func TestPaths(t *testing.T) {
	one, two, none := 0, 0, 0
	for _, s := range samples(t) {
		for c, docs := range map[*cluster]compiled{s.c: s.is, s.grown: s.more, s.narrower: s.less} {
			manifests := docs.manifests(t)
			used := map[string]bool{} // relay, label and caller
			// follow returns the host to which a label leads.
			var follow func(caller string, relay document.Relaying, label string) string
			follow = func(caller string, relay document.Relaying, label string) string {
				i := slices.IndexFunc(relay.Routes, func(r document.RelayRoute) bool { return r.Label == label })
				if i < 0 {
					return "no route"
				}
				r := relay.Routes[i]
				if !slices.ContainsFunc(r.From, func(id spiffe.ID) bool { return id.String() == caller }) {
					return "not for " + caller
				}
				used[relay.ID.String()+" "+label+" "+caller] = true
				if r.Next == "" {
					return r.To.Name()
				}
				return follow(relay.ID.String(), *manifests[r.To.Name()].Forwarder.Relay, r.Next)
			}
			hosts := map[string][]string{} // by face, those that publish it
			for _, name := range slices.Sorted(maps.Keys(manifests)) {
				for _, p := range manifests[name].Forwarder.Publish {
					if at := face(p.ID, p.Port); !slices.Contains(hosts[at], name) {
						hosts[at] = append(hosts[at], name)
					}
				}
				if got, want := manifests[name].Forwarder.Uplinks, c.uplinks(name); !slices.Equal(got, want) {
					t.Errorf("%s: %s keeps connections to %v, want %v", s, name, got, want)
				}
			}
			opaque := func(host, at string) (name string) {
				for _, p := range manifests[host].Forwarder.Publish {
					if face(p.ID, p.Port) == at {
						name = p.OpaqueName
					}
				}
				return name
			}
			for name, m := range manifests {
				meets := len(m.Forwarder.Uplinks) > 0
				for _, r := range m.Forwarder.Reach {
					meets = meets || slices.ContainsFunc(r.Via, func(v document.Via) bool { return len(v.By) == 1 && v.By[0] != name })
				}
				if meets = meets && !c.Hosts[name].Hidden; m.Forwarder.Meet != meets {
					t.Errorf("%s: relays tell the address of %s: %v, want %v", s, name, m.Forwarder.Meet, meets)
				}
				for _, r := range m.Forwarder.Reach {
					at := face(r.ID, r.Port)
					var want, got []string
					for _, on := range hosts[at] {
						for _, by := range c.paths(name, on) {
							want = append(want, strings.Join(by, " ")+" to "+on)
						}
					}
					for _, v := range r.Via {
						to := follow(m.Identity.ID.String(), *manifests[v.By[0]].Forwarder.Relay, v.Label)
						got = append(got, strings.Join(v.By, " ")+" to "+to)
						if m.Forwarder.Relays[v.By[0]].ID != manifests[v.By[0]].Forwarder.Relay.ID {
							t.Errorf("%s: %s takes %s for relay %s", s, name, m.Forwarder.Relays[v.By[0]].ID, v.By[0])
						}
						if _, known := manifests[to]; known && opaque(to, at) != r.OpaqueName {
							t.Errorf("%s: %s calls %s %q, and %s has %q", s, name, at, r.OpaqueName, to, opaque(to, at))
						}
						if len(v.By) == 1 {
							one++
						} else {
							two++
						}
					}
					slices.Sort(want)
					slices.Sort(got)
					if !slices.Equal(got, want) {
						t.Errorf("%s: %s reaches %s by %v, want %v", s, name, at, got, want)
					}
					if len(r.Endpoints) == 0 {
						none++
					}
				}
				for relay, at := range m.Forwarder.Relays {
					if !slices.Equal(at.Addresses, c.calls(name, relay)) {
						t.Errorf("%s: %s calls relay %s at %v, want %v", s, name, relay, at.Addresses, c.calls(name, relay))
					}
				}
			}
			for name, m := range manifests {
				if m.Forwarder.Relay == nil {
					continue
				}
				if len(m.Forwarder.Listen) == 0 {
					t.Errorf("%s: relay %s listens nowhere", s, name)
				}
				for _, r := range m.Forwarder.Relay.Routes {
					for _, from := range r.From {
						if !used[m.Forwarder.Relay.ID.String()+" "+r.Label+" "+from.String()] {
							t.Errorf("%s: relay %s has a route from %s to %s that nobody has", s, name, from, r.To)
						}
					}
				}
			}
		}
	}
	if one < 10**count || two < *count || none < *count {
		t.Errorf("only %d paths of one relay, %d of two, and %d services without an address", one, two, none)
	}
}

// TestHiddenHosts checks that no host but the hidden one itself has its addresses, that relays learn no
// users and no services, and that no document has the salt.
func TestHiddenHosts(t *testing.T) {
	named := regexp.MustCompile(`spiffe://[^"]*/(user|service)/`)
	hidden := 0
	for _, s := range samples(t) {
		for c, docs := range map[*cluster]compiled{s.c: s.is, s.grown: s.more, s.narrower: s.less} {
			addresses := map[string][]string{}
			for name, h := range c.Hosts {
				if !h.Hidden {
					continue
				}
				hidden++
				for _, at := range append(slices.Collect(maps.Values(h.Networks)), cmp.Or(h.Address, "no address")) {
					addresses[name] = append(addresses[name], `"`+net.JoinHostPort(at, "4610")+`"`)
				}
			}
			for name, bodies := range docs.Documents {
				for kind, raw := range bodies {
					for of, all := range addresses {
						for _, at := range all {
							if of != name && strings.Contains(raw.Body, at) {
								t.Errorf("%s: the %s of %s has the address %s of %s, which is hidden", s, kind, name, at, of)
							}
						}
					}
					if c.PathSalt != "" && strings.Contains(raw.Body, c.PathSalt) {
						t.Errorf("%s: the %s of %s has the salt", s, kind, name)
					}
				}
			}
			for name, m := range docs.manifests(t) {
				if m.Forwarder.Relay == nil {
					continue
				}
				text, err := json.Marshal(m.Forwarder.Relay)
				if err != nil {
					t.Fatal(err)
				}
				if found := named.Find(text); found != nil {
					t.Errorf("%s: relay %s is told of %s", s, name, found)
				}
			}
		}
	}
	if hidden < *count/4 {
		t.Errorf("only %d hidden hosts", hidden)
	}
}
