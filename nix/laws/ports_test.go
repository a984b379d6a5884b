package laws

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
)

// servicePort is a port of a service with several.
type servicePort struct {
	Port       int      `json:"port,omitempty"`
	ListenPort int      `json:"listenPort,omitempty"`
	Protocol   []string `json:"protocol,omitempty"`
	Identity   string   `json:"identity,omitempty"`
}

// ports gives some services several ports, and makes roles name one of these or except it. It does
// not use the generator's random numbers, so that the rest of the topology does not change.
func (c *cluster) ports(services, roles []string) {
	g := generator{rand.New(rand.NewPCG(uint64(len(c.Hosts)), uint64(len(services))))}
	for _, name := range services {
		s := c.Services[name]
		server := false
		for _, d := range c.Providers["database"].Servers {
			server = server || d.Service == name
		}
		if s.Scope == "" && g.IntN(4) > 0 || server || s.Upstream != "" || s.ListenPort != 0 || s.Protocol == "udp" {
			continue
		}
		http := &servicePort{Port: s.Port, Identity: s.Identity}
		if s.Protocol != "" {
			http.Protocol = []string{s.Protocol}
		}
		s.Ports = map[string]*servicePort{
			"http": http, "metrics": {Port: s.Port + 500},
			"dns": {Port: s.Port + 100, ListenPort: 53, Protocol: []string{"tcp", "udp"}},
		}
		s.Port, s.Protocol, s.Identity = 0, "", ""
		port := name + ":" + sorted(s.Ports)[g.IntN(3)]
		naming := slices.IndexFunc(roles, func(r string) bool { return slices.Contains(c.Roles[r].Services, name) })
		if naming < 0 || s.Visibility != "" || g.IntN(3) == 0 {
			g.except(c, c.Roles[roles[g.IntN(len(roles))]], port)
			continue
		}
		role := c.Roles[roles[naming]]
		role.Services[slices.Index(role.Services, name)] = port
	}
}

// several returns a service with these ports.
func several(ports map[string]any) map[string]any {
	return map[string]any{"host": "a", "ports": ports}
}

// faces returns the IDs of a service on a host, with each port if it has several.
func (s *service) faces(name, host string) (all []string) {
	for _, id := range s.ids(name, host) {
		if s.Ports == nil {
			all = append(all, id)
		}
		for _, port := range sorted(s.Ports) {
			all = append(all, id+":"+port)
		}
	}
	return all
}

// cutPort splits a name or an ID from the port at its end.
func cutPort(text string) (of, port string) {
	if i := strings.LastIndexByte(text, ':'); i > strings.LastIndexByte(text, '/') {
		return text[:i], text[i+1:]
	}
	return text, ""
}

// face returns the ID of an entry of a manifest, with its port.
func face(id spiffe.ID, port string) string {
	return strings.TrimSuffix(id.String()+":"+port, ":")
}

// at returns a service with only one of its ports, over a protocol; the service itself if it has
// one.
func (s *service) at(port string, over document.Protocol) *service {
	p := s.Ports[port]
	if p == nil {
		return s
	}
	one := *s
	one.Port, one.ListenPort, one.Identity = p.Port, p.ListenPort, p.Identity
	if one.Protocol = ""; over == document.UDP && slices.Contains(p.Protocol, "udp") {
		one.Protocol = "udp"
	}
	return &one
}
