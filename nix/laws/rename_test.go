package laws

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/florete/florete/nix/operator/plan"
	"github.com/florete/florete/nix/operator/rename"
)

// TestRenameLosesNothing checks that a renamed service keeps what providers have for it, and that
// the access after the change is the access before it, with the new name.
func TestRenameLosesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	const next = "renamed"
	type try struct {
		seed uint64
		old  string
	}
	var tries []try
	var all []json.RawMessage
	had := map[string]int{}
	for i := range min(*count, 40) {
		seed := *seed + uint64(i)
		g := generator{rand.New(rand.NewPCG(seed, 0))}
		c := g.cluster()
		// A service with data, if there is one. Replicas are placed by the name of the service.
		services := slices.DeleteFunc(sorted(c.Services), func(name string) bool { return c.Services[name].Replicas != nil })
		if len(services) == 0 {
			continue
		}
		g.Shuffle(len(services), func(i, j int) { services[i], services[j] = services[j], services[i] })
		weight := func(name string) int {
			s := c.Services[name]
			return len(s.Databases) + len(s.Git) + len(s.Needs) + len(s.SSO)
		}
		old := slices.MaxFunc(services, func(a, b string) int { return weight(a) - weight(b) })
		s := c.Services[old]
		had["databases"] += len(s.Databases)
		had["git"] += len(s.Git)
		had["needs"] += len(s.Needs)
		had["sso"] += len(s.SSO)
		var topology map[string]any
		if err := json.Unmarshal(raw(c), &topology); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(rename.Topology(topology, old, next))
		if err != nil {
			t.Fatal(err)
		}
		tries = append(tries, try{seed, old})
		all = append(all, raw(c), text)
	}
	for what, n := range had {
		if n == 0 && *count > 20 {
			t.Errorf("no renamed service has %s", what)
		}
	}
	got := tryAll(t, "nix-instantiate", all)
	for i, try := range tries {
		was, is := got[2*i], got[2*i+1]
		if was.Report != "" || is.Report != "" {
			t.Errorf("-seed %d: %s: %s%s", try.seed, try.old, was.Report, is.Report)
			continue
		}
		p, err := plan.Compare(was.snapshot(), is.snapshot())
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range p.Losses {
			t.Errorf("-seed %d: %s: %s %s", try.seed, try.old, l.What, l.Then)
		}
		id := regexp.MustCompile(`\bservice/([a-z0-9-]+/)?` + regexp.QuoteMeta(try.old) + `($|[^a-z0-9-])`)
		reached := func(rights []plan.Right) map[string]bool {
			all := map[string]bool{}
			for _, r := range rights {
				if r.May == "reach" {
					all[id.ReplaceAllString(strings.Join([]string{r.Who, r.What}, " reaches "), "service/${1}"+next+"${2}")] = true
				}
			}
			return all
		}
		if closed, opened := reached(p.Closed), reached(p.Opened); !maps.Equal(closed, opened) {
			t.Errorf("-seed %d: %s: access is %v, want %v", try.seed, try.old, slices.Sorted(maps.Keys(opened)), slices.Sorted(maps.Keys(closed)))
		}
	}
}
