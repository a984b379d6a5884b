// Package laws tests general properties of the compiler on random topologies. The flags -seed and
// -topologies select which and how many; a failure prints its seed.
package laws

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/explain"
	"github.com/florete/florete/nix/operator/plan"
)

var (
	seed  = flag.Uint64("seed", 1, "of the first topology")
	count = flag.Int("topologies", 40, "how many to generate")
	edit  = flag.String("edit", "", "the one to try of TestPlanWidensWhenAnythingMore")
)

// sample is a topology with three variants.
type sample struct {
	seed                       uint64
	c, grown, narrower         *cluster
	added                      string // the host that grown adds
	is, other, more, less      compiled
	text, shuffled, wide, thin json.RawMessage
}

func (s *sample) String() string { return fmt.Sprintf("-seed %d -topologies 1", s.seed) }

var made struct {
	sync.Once
	samples []*sample
}

// samples generates the samples once, and compiles them with one Nix process.
func samples(t *testing.T) []*sample {
	t.Helper()
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	made.Do(func() {
		var all []json.RawMessage
		for i := range *count {
			s := &sample{seed: *seed + uint64(i)}
			g := generator{rand.New(rand.NewPCG(s.seed, 0))}
			s.c = g.cluster()
			s.grown, s.added = g.withHost(s.c)
			s.narrower = g.withoutRole(s.c)
			s.text, s.wide, s.thin = raw(s.c), raw(s.grown), raw(s.narrower)
			s.shuffled = g.shuffled(s.c)
			made.samples = append(made.samples, s)
			all = append(all, s.text, s.shuffled, s.wide, s.thin)
		}
		got := evaluate(t, "nix-instantiate", all)
		for i, s := range made.samples {
			s.is, s.other, s.more, s.less = got[4*i], got[4*i+1], got[4*i+2], got[4*i+3]
			s.c.settle(s.is)
			s.grown.settle(s.more)
			s.narrower.settle(s.less)
		}
	})
	if len(made.samples) == 0 || made.samples[0].is.Documents == nil {
		t.Fatal("nothing was compiled")
	}
	return made.samples
}

func raw(c *cluster) json.RawMessage {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	return b
}

func same(a, b map[string]map[string]compile.Raw) bool {
	return maps.EqualFunc(a, b, maps.Equal[map[string]compile.Raw, map[string]compile.Raw])
}

// TestSameInputSameBytes checks that the same input gives the same bytes, in another process, and
// with another Nix if $FLORETE_OTHER_NIX names its nix-instantiate.
func TestSameInputSameBytes(t *testing.T) {
	var all []json.RawMessage
	for _, s := range samples(t) {
		all = append(all, s.text)
	}
	check := func(t *testing.T, nix string) {
		for i, again := range evaluate(t, nix, all) {
			if s := samples(t)[i]; !same(s.is.Documents, again.Documents) {
				t.Errorf("%s: other bytes", s)
			}
		}
	}
	check(t, "nix-instantiate")
	t.Run("another Nix", func(t *testing.T) {
		other := os.Getenv("FLORETE_OTHER_NIX")
		if other == "" {
			t.Skip("NOT RUN: FLORETE_OTHER_NIX names no nix-instantiate of another version")
		}
		check(t, other)
	})
}

// TestOrderDoesNotMatter checks that the order of definitions does not affect documents.
func TestOrderDoesNotMatter(t *testing.T) {
	for _, s := range samples(t) {
		if !same(s.is.Documents, s.other.Documents) {
			t.Errorf("%s: other bytes for %s", s, s.shuffled)
		}
	}
}

// TestAloneAsAmongAll checks that a host that is compiled alone gets the same bytes as among all.
func TestAloneAsAmongAll(t *testing.T) {
	for _, s := range samples(t) {
		for _, c := range []compiled{s.is, s.more, s.less} {
			if !same(c.Documents, c.Alone) {
				t.Errorf("%s: other bytes", s)
			}
		}
	}
}

// Adding a host changes the bodies of no other hosts, except hosts that reach it or are reached,
// that give replicas to it, or that share a secret or a public name with it; relays on its paths,
// where the second relay must accept the first; the policies of its providers; and the policies of
// providers that it operates or whose binary cache it reaches.
func TestAddedHostLeavesOthersAlone(t *testing.T) {
	untouched := 0
	for _, s := range samples(t) {
		edges, manifests := s.grown.edges(), s.more.manifests(t)
		for name, before := range s.is.Documents {
			after := s.more.Documents[name]
			relays := s.grown.isOnPath(name, s.added, s.grown.brute())
			gives := len(s.c.runs(name)) > len(s.grown.runs(name))
			shares := slices.ContainsFunc(s.grown.secretsOn(name), func(q string) bool { return slices.Contains(s.grown.secretsOn(s.added), q) })
			if !edges[pair{name, s.added}] && !relays && !gives && !shares && !s.grown.certifiedBoth(name, s.added) {
				untouched++
				if before[document.DocManifest].Body != after[document.DocManifest].Body {
					t.Errorf("%s: the manifest of %s changes, which has no edge with %s", s, name, s.added)
				}
			}
			_, provides := manifests[s.added].Providers[name]
			operates := slices.Contains(s.grown.all(s.grown.Hosts[s.added]).Roles, "operator")
			fetches := edges[pair{name, s.added}] && slices.Contains(s.grown.Roles["node"].ServiceGroups, spiffe.CacheGroup)
			if !provides && !operates && !fetches && before[document.DocPolicy].Body != after[document.DocPolicy].Body {
				t.Errorf("%s: the policy of %s changes, which is no provider of %s", s, name, s.added)
			}
		}
	}
	if untouched < len(samples(t))/2 {
		t.Errorf("only %d hosts had no edge with the new one", untouched)
	}
}

// mention matches generated names, and the addresses of generated hosts and outside programs.
var mention = regexp.MustCompile(`\b([hsurgnitkmqo]\d+x|192\.0\.2\.\d+|10\.[89]\.\d+\.\d+|fd09::\d+|203\.0\.113\.\d+)\b`)

// TestNeedToKnow checks that a manifest names no host, user, service, role or group that it does
// not need.
func TestNeedToKnow(t *testing.T) {
	hidden := 0
	for _, s := range samples(t) {
		for c, docs := range map[*cluster]compiled{s.c: s.is, s.grown: s.more} {
			reach, names := c.brute(), c.mentioned()
			for name := range docs.manifests(t) {
				need := c.needToKnow(name, reach)
				body := docs.Documents[name][document.DocManifest].Body
				for _, found := range mention.FindAllString(body, -1) {
					if !need[found] {
						t.Errorf("%s: the manifest of %s names %s", s, name, found)
					}
				}
				for name := range names {
					if !need[name] {
						hidden++
					}
				}
			}
		}
	}
	if hidden < 10*len(samples(t)) {
		t.Errorf("only %d names were to be hidden", hidden)
	}
}

// needToKnow returns the names that a host's manifest may contain: its services and their callers,
// the services that its identities reach with their hosts, and its providers.
func (c *cluster) needToKnow(name string, reach map[pair]bool) map[string]bool {
	need := map[string]bool{}
	known := func(host string) { need[host] = true; c.called(name, host, need) }
	parts := func(id string) {
		for _, n := range mention.FindAllString(id, -1) {
			need[n] = true
		}
	}
	known(name)
	need[c.Hosts[name].Bind] = true
	for kind, p := range c.Providers {
		if kind != "store" && (kind != "oidc" || c.signsOn(name)) && (kind != "jwt" || c.workloadsOn(name) || c.provides(name, "federation") || c.provides(name, "token")) && (kind != "federation" || c.foreignersOn(name)) && (kind != "file" || c.filesOn(name)) && (kind != "secret" || len(c.secretsOn(name)) > 0) && (kind != "token" || len(c.tenantsOn(name)) > 0) && (kind != "tls" || c.certified(name)) && (kind != "database" || c.databasesOn(name)) && (kind != "git" || c.gitOn(name)) && (kind != "config" || c.Hosts[name].Deploy == "") &&
			(p.Port == 0 || c.ownOn(name, kind)) {
			for _, h := range p.Hosts {
				known(h)
			}
		}
	}
	for _, r := range c.all(c.Hosts[name]).Roles {
		need[r] = true
	}
	for _, o := range c.outsideOn(name) {
		need[o] = true
		parts(strings.Join(c.Outside[o].Addresses, " "))
	}
	for _, s := range c.runs(name) {
		parts(c.Services[s].Upstream)
	}
	for _, s := range append(c.secretsOn(name), c.tenantsOn(name)...) {
		need[s] = true
	}
	for relay := range c.relaysOf(name, reach) {
		known(relay)
	}
	for host := range c.relayedBy(name, reach) {
		need[host] = true
	}
	own := map[string]bool{}
	for _, p := range c.principals() {
		if p.host == name {
			own[p.id] = true
			parts(p.id)
		}
	}
	for _, public := range c.namesAbroad(name) {
		parts(public)
	}
	for p := range c.abroad() {
		if own[p.who] {
			parts(p.what)
			for _, at := range c.foreignAt(p.what) {
				parts(at[0])
			}
		}
	}
	for s, v := range c.Services {
		for _, h := range v.on() {
			ids := v.faces(s, h)
			for p := range reach {
				switch {
				case slices.Contains(ids, p.what) && own[p.who]:
					parts(p.what)
					for _, alias := range v.Aliases {
						parts(alias + "." + c.TrustDomain + ".rete")
					}
					if slices.Contains(c.serves(s), name) {
						for _, name := range append([]string{v.TLSName}, v.TLSAliases...) {
							parts(name)
						}
					}
					c.called(name, h, need)
				case slices.Contains(ids, p.what) && h == name:
					parts(p.who)
				}
			}
		}
	}
	return need
}

// calls returns the addresses at which the forwarder of one host calls another forwarder.
func (c *cluster) calls(from, to string) (at document.Addresses) {
	h := c.Hosts[to]
	switch {
	case from == to && h.Hidden:
		return document.Addresses{"127.0.0.1:4610"}
	case from == to:
		return document.Addresses{net.JoinHostPort(cmp.Or(h.Bind, "127.0.0.1"), "4610")}
	case h.Hidden:
		return nil
	}
	for _, network := range slices.Sorted(maps.Keys(h.Networks)) {
		if _, shared := c.Hosts[from].Networks[network]; shared {
			at = append(at, net.JoinHostPort(h.Networks[network], "4610"))
		}
	}
	if h.Address == "" {
		return at
	}
	return append(at, net.JoinHostPort(h.Address, "4610"))
}

// called adds the addresses at which one host calls another.
func (c *cluster) called(from, to string, need map[string]bool) {
	for _, at := range c.calls(from, to) {
		ip, _, _ := net.SplitHostPort(at)
		need[ip] = true
	}
}

// TestAccessAgrees checks that the callers that services allow, the services that callers are told
// of, the result of trying every pair, and the output of explain are the same pairs, and that
// callers are told of every host that publishes.
func TestAccessAgrees(t *testing.T) {
	total := 0
	for _, s := range samples(t) {
		for c, docs := range map[*cluster]compiled{s.c: s.is, s.grown: s.more, s.narrower: s.less} {
			want := c.brute()
			total += len(want)
			allowed, reached := map[pair]bool{}, map[pair]bool{}
			publish := map[string][]string{} // hosts by service
			manifests := docs.manifests(t)
			for _, name := range slices.Sorted(maps.Keys(manifests)) {
				m := manifests[name]
				for _, p := range m.Forwarder.Publish {
					at := face(p.ID, p.Port)
					if !slices.Contains(publish[at], name) {
						publish[at] = append(publish[at], name)
					}
					for _, a := range p.Allow {
						allowed[pair{a.ID.String(), at}] = true
					}
				}
			}
			for name, m := range manifests {
				for _, r := range m.Forwarder.Reach {
					id := face(r.ID, r.Port)
					want := c.foreignAt(id)
					for _, on := range publish[id] {
						if at := c.calls(name, on); at != nil {
							want = append(want, at)
						}
					}
					if !slices.EqualFunc(want, r.Endpoints, slices.Equal) {
						t.Errorf("%s: %s finds %s at %v, want %v", s, name, id, r.Endpoints, want)
					}
					for _, as := range r.Callers {
						reached[pair{as.String(), id}] = true
					}
				}
			}
			differ(t, s, "services allow", allowed, want)
			differ(t, s, "callers learn", reached, c.reaching())
			explained := map[pair]bool{}
			a := explain.New(docs.Topology)
			for name, service := range docs.Topology.Services {
				for _, p := range a.Principals() {
					for _, f := range service.Faces() {
						at := face(f.ID, f.Port)
						meant, err := a.Service(at)
						if bare, _ := cutPort(meant); err != nil || bare != name && !strings.HasPrefix(bare, name+"@") {
							t.Fatalf("%s: %s is found as %q, %v", s, at, meant, err)
						}
						if e := a.Explain(p, meant); e.Allowed && (e.Reached == nil || slices.Contains(e.Reached, f)) {
							explained[pair{p.ID.String(), at}] = true
						}
					}
				}
			}
			for _, f := range docs.Topology.Others() {
				for id := range f.Services {
					for _, p := range a.Principals() {
						if a.Explain(p, id.String()).Allowed {
							explained[pair{p.ID.String(), id.String()}] = true
						}
					}
				}
			}
			all := c.abroad()
			maps.Copy(all, want)
			differ(t, s, "explain says", explained, all)
		}
	}
	if total < 20*len(samples(t)) {
		t.Errorf("only %d pairs in all", total)
	}
}

func differ(t *testing.T, s *sample, who string, got, want map[pair]bool) {
	t.Helper()
	for p := range got {
		if !want[p] {
			t.Errorf("%s: %s that %s reaches %s, which no role says", s, who, p.who, p.what)
		}
	}
	for p := range want {
		if !got[p] {
			t.Errorf("%s: %s nothing of %s reaching %s, which a role says", s, who, p.who, p.what)
		}
	}
}

// TestGrantsAreNeeds checks that every need of a host is granted by each of its providers, as it
// requests it, and that nothing else is granted.
func TestGrantsAreNeeds(t *testing.T) {
	for _, s := range samples(t) {
		for _, docs := range []compiled{s.is, s.more, s.less} {
			grant := func(provider, caller, need, kind string, request json.RawMessage) string {
				return strings.Join([]string{provider, caller, need, kind, string(request)}, " ")
			}
			meant, granted := map[string]bool{}, map[string]bool{}
			for _, m := range docs.manifests(t) {
				for _, n := range m.Needs {
					for _, p := range n.Providers {
						meant[grant(p, m.Identity.ID.String(), n.ID, n.Kind, n.Request)] = true
					}
				}
			}
			for name, p := range docs.policies(t) {
				for _, g := range p.Grants {
					granted[grant(name, g.Caller.String(), g.Need, g.Kind, g.Request)] = true
				}
			}
			if !maps.Equal(meant, granted) {
				t.Errorf("%s: requested %d, granted %d", s, len(meant), len(granted))
			}
		}
	}
}

// TestRemovingARoleNarrows checks that removing a role, or part of one, never widens access.
func TestRemovingARoleNarrows(t *testing.T) {
	narrowed := 0
	for _, s := range samples(t) {
		before, after := s.c.brute(), allowedBy(s.less.manifests(t))
		for p := range after {
			if !before[p] {
				t.Errorf("%s: %s now reaches %s", s, p.who, p.what)
			}
		}
		if len(after) < len(before) {
			narrowed++
		}
		p, err := plan.Compare(s.is.snapshot(), s.less.snapshot())
		if err != nil {
			t.Fatal(err)
		}
		if p.Widens {
			t.Errorf("%s: the plan opens %v", s, p.Opened)
		}
	}
	if narrowed < len(samples(t))/4 {
		t.Errorf("only %d narrowed at all", narrowed)
	}
}

func allowedBy(manifests map[string]document.Manifest) map[pair]bool {
	pairs := map[pair]bool{}
	for _, m := range manifests {
		for _, p := range m.Forwarder.Publish {
			for _, a := range p.Allow {
				pairs[pair{a.ID.String(), face(p.ID, p.Port)}] = true
			}
		}
	}
	return pairs
}

// TestPlanTellsTheDifference checks that a plan opens and closes exactly the pairs that differ when
// every pair is tried, and names exactly the hosts whose bytes change.
func TestPlanTellsTheDifference(t *testing.T) {
	for _, s := range samples(t) {
		before, after := s.c.brute(), s.grown.brute()
		maps.Copy(before, s.c.abroad())
		maps.Copy(after, s.grown.abroad())
		p, err := plan.Compare(s.is.snapshot(), s.more.snapshot())
		if err != nil {
			t.Fatal(err)
		}
		check := func(side string, rights []plan.Right, has, lacks map[pair]bool) {
			got, want := map[pair]bool{}, map[pair]bool{}
			for _, r := range rights {
				if r.May == "reach" {
					got[pair{whole(r.Who), whole(r.What)}] = true
				}
			}
			for pair := range has {
				if !lacks[pair] {
					want[pair] = true
				}
			}
			if !maps.Equal(got, want) {
				t.Errorf("%s: the plan %s %v, want %v", s, side, got, want)
			}
		}
		check("opens", p.Opened, after, before)
		check("closes", p.Closed, before, after)
		var got, want []string
		for _, h := range p.Hosts {
			got = append(got, h.Name)
		}
		for _, name := range slices.Sorted(maps.Keys(s.more.Documents)) {
			if body(s.is, name) != body(s.more, name) {
				want = append(want, name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the plan has hosts %v, bytes change on %v", s, got, want)
		}
	}
}

// whole returns the ID for a name in a plan.
func whole(name string) string {
	path, domain, foreign := strings.Cut(name, " of ")
	if !foreign {
		domain = "laws.flor"
	}
	return "spiffe://" + domain + "/" + path
}

func body(c compiled, host string) string {
	return c.Documents[host][document.DocManifest].Body + c.Documents[host][document.DocPolicy].Body
}
