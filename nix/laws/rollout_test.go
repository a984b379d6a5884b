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
	Maintenance map[string]window `json:"maintenance,omitempty"`
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

// rolls adds waves to some clusters with one config provider.
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
	c.Rollout = r
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
