package laws

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// generated is a generated secret.
type generated struct {
	Generate   string   `json:"generate"`
	Length     int      `json:"length,omitempty"`
	Readers    []reader `json:"readers"`
	Rotate     int      `json:"rotate,omitempty"`
	Overlap    int      `json:"overlap,omitempty"`
	Generation int      `json:"generation,omitempty"`
	PerHost    bool     `json:"perHost,omitempty"`
}

type reader struct {
	Service string   `json:"service,omitempty"`
	Host    string   `json:"host,omitempty"`
	Group   string   `json:"group,omitempty"`
	Tags    []string `json:"tags,omitempty"`
	Overlap bool     `json:"overlap,omitempty"`
	Mode    string   `json:"mode,omitempty"`
	Restart string   `json:"restart,omitempty"`
}

// secrets adds a few secrets, each with some readers.
func (g generator) secrets(c *cluster) {
	c.Secrets = map[string]*generated{}
	services, hosts := slices.Sorted(maps.Keys(c.Services)), slices.Sorted(maps.Keys(c.Hosts))
	for i := range 1 + g.IntN(4) {
		s := &generated{Generate: []string{"password", "hex", "age", "ssh", "wireguard"}[g.IntN(5)], Generation: g.IntN(3)}
		if (s.Generate == "password" || s.Generate == "hex") && g.IntN(2) == 0 {
			s.Length = 20 + g.IntN(20)
		}
		if g.IntN(3) == 0 {
			s.Rotate = 30
		}
		for _, name := range g.some(services, 2) {
			s.Readers = append(s.Readers, reader{Service: name, Overlap: g.IntN(3) == 0, Restart: "web.service"})
		}
		for _, name := range g.some(hosts, 2) {
			s.Readers = append(s.Readers, reader{Host: name, Overlap: g.IntN(3) == 0, Mode: "0440"})
		}
		s.PerHost = i == 1
		s.generalize(c, i)
		if len(s.Readers) == 0 {
			s.Readers = []reader{{Host: hosts[0]}}
		}
		c.Secrets[fmt.Sprintf("q%dx", i)] = s
	}
}

// generalize replaces a single host among the readers of the i-th secret by its outermost group, or
// by hosts with its tags.
func (s *generated) generalize(c *cluster, i int) {
	last := len(s.Readers) - 1
	if last < 0 || s.Readers[last].Host == "" || last > 0 && s.Readers[last-1].Host != "" {
		return // readers of one secret must not name a host twice
	}
	r, h := &s.Readers[last], c.Hosts[s.Readers[last].Host]
	switch outer, _, _ := strings.Cut(h.Group, "/"); {
	case i%2 == 0 && outer != "" && len(c.levels(h)) > 1:
		r.Host, r.Group = "", outer
	case i%2 == 1 && len(h.Tags) > 0:
		r.Host, r.Tags = "", h.Tags
	}
}

// selects reports whether a host is a reader of a secret.
func (c *cluster) selects(r reader, host string) bool {
	h := c.Hosts[host]
	within := h.Group == r.Group || strings.HasPrefix(h.Group, r.Group+"/")
	return r.Host == host || r.Group != "" && within || len(r.Tags) > 0 && !slices.ContainsFunc(r.Tags, func(tag string) bool { return !slices.Contains(c.all(h).Tags, tag) })
}

// secretsOn returns the secrets that a host or its services read, and these services.
func (c *cluster) secretsOn(host string) (names []string) {
	for name, s := range c.Secrets {
		for _, r := range s.Readers {
			if c.selects(r, host) || r.Service != "" && slices.Contains(c.Services[r.Service].on(), host) {
				names = append(names, name)
				if r.Service != "" {
					names = append(names, r.Service)
				}
			}
		}
	}
	return names
}
