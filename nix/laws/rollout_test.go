package laws

import (
	"maps"
	"slices"
	"testing"

	"github.com/florete/florete/internal/document"
)

// rollout is the attribute of the topology.
type rollout struct {
	Waves       []wave            `json:"waves,omitempty"`
	Healthy     int               `json:"healthy,omitempty"`
	Within      int               `json:"within,omitempty"`
	AtOnce      []budget          `json:"atOnce,omitempty"`
	Maintenance map[string]window `json:"maintenance,omitempty"`
}

// budget is a disruption budget.
type budget struct {
	Tags []string `json:"tags"`
	Most int      `json:"most"`
}

type wave struct {
	Tags    []string `json:"tags,omitempty"`
	Percent int      `json:"percent,omitempty"`
	Rest    bool     `json:"rest,omitempty"`
}

type window struct {
	Days    []string `json:"days,omitempty"`
	Start   string   `json:"start"`
	Minutes int      `json:"minutes,omitempty"`
}

// rolls adds waves and disruption budgets to some clusters with one config provider. Some of them
// have budgets alone.
func (c *cluster) rolls() {
	which := len(c.Hosts) + len(c.Users)
	if len(c.Providers["config"].Hosts) != 1 || which%3 == 0 {
		return
	}
	r := &rollout{Healthy: 60}
	for _, name := range slices.Sorted(maps.Keys(c.Hosts)) {
		if tags := c.Hosts[name].Tags; len(tags) > 0 {
			r.Waves = append(r.Waves, wave{Tags: tags})
			break
		}
	}
	r.Waves = append(r.Waves, wave{Percent: 20}, wave{Percent: 60}, wave{Rest: true})
	if groups := slices.Sorted(maps.Keys(c.HostGroups)); len(groups) > 0 {
		r.Within = 1000
		r.Maintenance = map[string]window{groups[0]: {Days: []string{"sun"}, Start: "23:59", Minutes: 1}, groups[len(groups)-1]: {Start: "00:00"}}
	}
	r.AtOnce = c.budgets()
	if len(r.AtOnce) > 0 && which%3 == 1 {
		r.Waves = nil
	}
	c.Rollout = r
}

// budgets returns a budget for each tag, and for each pair of tags, of several hosts. Each budget
// can hold one of its hosts back.
func (c *cluster) budgets() (all []budget) {
	for i, a := range tags {
		for _, b := range tags[i:] {
			of := slices.Compact([]string{a, b})
			if n := len(c.tagged(of)); n > 1 {
				all = append(all, budget{of, 1 + len(all)%(n-1)})
			}
		}
	}
	return all
}

// tagged returns the hosts that have all of the tags, in order.
func (c *cluster) tagged(tags []string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(c.Hosts)), func(name string) bool {
		has := c.all(c.Hosts[name]).Tags
		return slices.ContainsFunc(tags, func(tag string) bool { return !slices.Contains(has, tag) })
	})
}

// waveOf returns the wave of each host in the policy of a cluster's provider.
func (c *cluster) waveOf(t *testing.T, docs compiled) (waves map[string]int, policy *document.Rollout) {
	t.Helper()
	for host, p := range docs.policies(t) {
		provides := slices.Contains(c.Providers["config"].Hosts, host)
		if (p.Rollout != nil) != (provides && c.Rollout != nil) {
			t.Errorf("%s has the rollout: %v", host, p.Rollout)
		}
		if p.Rollout != nil {
			policy = p.Rollout
		}
	}
	if policy == nil {
		return nil, nil
	}
	waves = map[string]int{}
	for i, hosts := range policy.Waves {
		if len(hosts) == 0 {
			t.Error("a wave reaches nobody")
		}
		for _, h := range hosts {
			if _, twice := waves[h]; twice {
				t.Errorf("%s is in two waves", h)
			}
			waves[h] = i
		}
	}
	return waves, policy
}

// TestWavesLeadToEveryHost checks that exactly the hosts that fetch documents are in one wave each,
// and that a new host does not change the order of the others.
func TestWavesLeadToEveryHost(t *testing.T) {
	for _, s := range samples(t) {
		waves, policy := s.c.waveOf(t, s.is)
		if policy == nil {
			continue
		}
		for name, h := range s.c.Hosts {
			if _, in := waves[name]; in != (h.Deploy != "closure") {
				t.Errorf("%s: %s is in a wave: %v", s, name, in)
			}
		}
		windows := map[string]bool{}
		for _, m := range policy.Maintenance {
			for _, h := range m.Hosts {
				if _, in := waves[h]; !in || windows[h] {
					t.Errorf("%s: %s has a window of %s", s, h, m.Group)
				}
				windows[h] = true
			}
		}
		grown, _ := s.grown.waveOf(t, s.more)
		for a := range waves {
			for b := range waves {
				if waves[a] < waves[b] && grown[a] >= grown[b] {
					t.Errorf("%s: with a host more %s no longer comes before %s", s, a, b)
				}
			}
		}
	}
}

// TestBudgetsNameTheirHosts checks that each disruption budget has exactly the hosts with its tags,
// in the order in which State.budgeted of package rollout searches them, that hosts of a budget are
// in waves if they fetch documents, and that budgets alone make one wave.
func TestBudgetsNameTheirHosts(t *testing.T) {
	for _, s := range samples(t) {
		for c, docs := range map[*cluster]compiled{s.c: s.is, s.grown: s.more, s.narrower: s.less} {
			waves, policy := c.waveOf(t, docs)
			if policy == nil {
				continue
			}
			if len(policy.Budgets) != len(c.Rollout.AtOnce) {
				t.Fatalf("%s: %d budgets, want %d", s, len(policy.Budgets), len(c.Rollout.AtOnce))
			}
			for i, b := range policy.Budgets {
				want := c.Rollout.AtOnce[i]
				if b.Most != want.Most || !slices.Equal(b.Tags, want.Tags) || !slices.Equal(b.Hosts, c.tagged(want.Tags)) {
					t.Errorf("%s: budget %d is %v of %v, want %v of %v", s, i, b, b.Hosts, want, c.tagged(want.Tags))
				}
				for _, h := range b.Hosts {
					if _, in := waves[h]; in == (c.Hosts[h].Deploy == "closure") {
						t.Errorf("%s: %s has a budget, and is in a wave: %t", s, h, in)
					}
				}
			}
			if c.Rollout.Waves == nil && len(policy.Waves) != 1 {
				t.Errorf("%s: %d waves, want one for the budgets", s, len(policy.Waves))
			}
		}
	}
}
