package laws

import (
	"fmt"
	"maps"
	"slices"
)

// generated is a generated secret.
type generated struct {
	Generate   string   `json:"generate"`
	Length     int      `json:"length,omitempty"`
	Readers    []reader `json:"readers"`
	Rotate     int      `json:"rotate,omitempty"`
	Overlap    int      `json:"overlap,omitempty"`
	Generation int      `json:"generation,omitempty"`
}

type reader struct {
	Service string `json:"service,omitempty"`
	Host    string `json:"host,omitempty"`
	Overlap bool   `json:"overlap,omitempty"`
	Mode    string `json:"mode,omitempty"`
	Restart string `json:"restart,omitempty"`
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
		if len(s.Readers) == 0 {
			s.Readers = []reader{{Host: hosts[0]}}
		}
		c.Secrets[fmt.Sprintf("q%dx", i)] = s
	}
}

// secretsOn returns the secrets that a host or its services read, and these services.
func (c *cluster) secretsOn(host string) (names []string) {
	for name, s := range c.Secrets {
		for _, r := range s.Readers {
			if r.Host == host || r.Service != "" && slices.Contains(c.Services[r.Service].on(), host) {
				names = append(names, name)
				if r.Service != "" {
					names = append(names, r.Service)
				}
			}
		}
	}
	return names
}
