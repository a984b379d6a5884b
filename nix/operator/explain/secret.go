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
	Holders  []Holder `json:"holders"`           // sorted by reader
	Makes    []string `json:"makes"`             // hosts that provide it
	PerHost  bool     `json:"perHost,omitempty"` // each host has a secret of its own
}

// Holder is a service or a node that can read a generated secret, with the hosts on which it reads
// the secret.
type Holder struct {
	Reader string   `json:"reader"` // service/NAME, node/NAME, group/PATH or tags/TAG,…
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
	h := Holders{Secret: name, Generate: s.Generate, Holders: []Holder{}, Makes: a.t.Providers["secret"].Hosts, PerHost: s.PerHost}
	for _, reader := range slices.Sorted(slices.Values(s.Readers)) {
		h.Holders = append(h.Holders, Holder{reader, a.readersOn(reader)})
	}
	return h, nil
}

// readersOn returns the hosts of a reader of a secret.
func (a *Access) readersOn(reader string) (hosts []string) {
	kind, of, _ := strings.Cut(reader, "/")
	switch kind {
	case "service":
		return a.t.Services[of].Hosts
	case "node":
		return []string{of}
	}
	for _, name := range slices.Sorted(maps.Keys(a.t.Hosts)) {
		h := a.t.Hosts[name]
		inGroup := kind == "group" && (h.Group == of || strings.HasPrefix(h.Group, of+"/"))
		lacksTag := func(tag string) bool { return !slices.Contains(h.Tags, tag) }
		if inGroup || kind == "tags" && !slices.ContainsFunc(strings.Split(of, ","), lacksTag) {
			hosts = append(hosts, name)
		}
	}
	return hosts
}

// String returns the holders as text.
func (h Holders) String() string {
	var b strings.Builder
	own := ""
	if h.PerHost {
		own = " for each host"
	}
	fmt.Fprintf(&b, "secret %s, %s that %s makes%s, is delivered to\n", h.Secret, h.Generate, strings.Join(h.Makes, ", "), own)
	for _, r := range h.Holders {
		fmt.Fprintf(&b, "  %s on %s\n", r.Reader, strings.Join(r.Hosts, ", "))
	}
	return b.String()
}
