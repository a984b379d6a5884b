package document

import (
	"fmt"
	"slices"
	"strings"

	"github.com/florete/florete/internal/spiffe"
)

// Aliases contains the additional DNS names of the services that a host reaches, and maps each name
// to its service. The names are fully qualified, as programs use them. A name that begins with "*."
// is a wildcard, and matches any single label in that place (RFC 9525, section 6.3). An exact name
// takes precedence over a wildcard:
//
//	docs.demo.flor.rete    → service/wiki
//	*.apps.demo.flor.rete  → service/apps, called shop.apps.demo.flor.rete
type Aliases map[string]spiffe.Dialable

// Aliases returns the additional DNS names of all services that the host of this manifest can
// reach.
func (m Manifest) Aliases() Aliases {
	a := Aliases{}
	for _, r := range m.Forwarder.Reach {
		if d, err := spiffe.Dial(r.ID); err == nil {
			for _, name := range r.Aliases {
				a[name] = d
			}
		}
	}
	return a
}

// Resolve returns the service whose additional DNS name is host, and false if there is none. Case
// and a final dot do not matter. An exact name takes precedence over a wildcard.
func (a Aliases) Resolve(host string) (spiffe.Dialable, bool) {
	h := strings.ToLower(strings.TrimSuffix(host, "."))
	first, above, _ := strings.Cut(h, ".")
	if !spiffe.IsLabel(first) {
		return spiffe.Dialable{}, false
	}
	d, ok := a[h]
	if !ok {
		d, ok = a[wildcard+above]
	}
	return d, ok
}

// wildcard is the prefix of a name whose first label matches any label.
const wildcard = "*."

// Covers reports whether pattern is a wildcard, such as "*.example.org", and matches name, such as
// "www.example.org".
func Covers(pattern, name string) bool {
	parent, wild := strings.CutPrefix(pattern, wildcard)
	_, above, _ := strings.Cut(name, ".")
	return wild && above == parent
}

// IsWildcard reports whether name is a wildcard pattern, such as "*.example.org".
func IsWildcard(name string) bool { return strings.HasPrefix(name, wildcard) }

// checkAliases checks the additional names of services in the manifest. Each name must be one
// label, or a wildcard above one label, in the cluster's trust domain, and must belong to a single
// service. All ports of a service have the same names.
func (m Manifest) checkAliases() error {
	given := map[string]spiffe.ID{}
	for _, r := range m.Forwarder.Reach {
		for i, name := range r.Aliases {
			local, ok := strings.CutSuffix(strings.TrimPrefix(name, wildcard), "."+m.TrustDomain+spiffe.Suffix)
			if !ok || !spiffe.IsLabel(local) {
				return fmt.Errorf("reach %s: alias %q, want a label or *. and a label, then .%s%s", r.ID, name, m.TrustDomain, spiffe.Suffix)
			}
			if of, ok := given[name]; ok && of != r.ID || slices.Contains(r.Aliases[:i], name) {
				return fmt.Errorf("reach %s: alias %q: given twice", r.ID, name)
			}
			given[name] = r.ID
		}
	}
	return nil
}
