package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Holders lists the services and nodes that can read a generated secret, with the hosts on which
// they read it.
type Holders struct {
	Secret   string   `json:"secret"`
	Generate string   `json:"generate"`
	Holders  []Holder `json:"holders"` // sorted by reader
	Makes    []string `json:"makes"`   // hosts that provide it
}

// Holder is a service or a node that can read a generated secret, with the hosts on which it reads
// the secret.
type Holder struct {
	Reader string   `json:"reader"` // service/NAME or node/NAME
	Hosts  []string `json:"hosts"`
}

// IsSecret reports whether a name has the form "secret/NAME".
func IsSecret(name string) bool { return strings.HasPrefix(name, "secret/") }

// WhoHas returns the services and nodes that can read a generated secret. The name of the secret is
// given as "secret/db" or "db".
func (a *Access) WhoHas(name string) (Holders, error) {
	name = strings.TrimPrefix(name, "secret/")
	s, ok := a.t.Secrets[name]
	if !ok {
		return Holders{}, fmt.Errorf("cluster %s has no secret %q%s", a.t.Name, name, meant(name, slices.Sorted(maps.Keys(a.t.Secrets))))
	}
	h := Holders{Secret: name, Generate: s.Generate, Holders: []Holder{}, Makes: a.t.Providers["secret"].Hosts}
	for _, reader := range slices.Sorted(slices.Values(s.Readers)) {
		kind, of, _ := strings.Cut(reader, "/")
		hosts := []string{of}
		if kind == "service" {
			hosts = a.t.Services[of].Hosts
		}
		h.Holders = append(h.Holders, Holder{reader, hosts})
	}
	return h, nil
}

// String returns the holders as text.
func (h Holders) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "secret %s, %s that %s makes, is delivered to\n", h.Secret, h.Generate, strings.Join(h.Makes, ", "))
	for _, r := range h.Holders {
		fmt.Fprintf(&b, "  %s on %s\n", r.Reader, strings.Join(r.Hosts, ", "))
	}
	return b.String()
}
