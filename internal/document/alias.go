package document

import (
	"fmt"
	"slices"
	"strings"

	"github.com/florete/florete/internal/spiffe"
)

// Aliases are other names of services that a host reaches, whole as programs call them. After
// "*." one has every name with one label before it (RFC 9525 section 6.3) that is no other's:
//
//	docs.demo.flor.rete    → service/wiki
//	*.apps.demo.flor.rete  → service/apps, called shop.apps.demo.flor.rete
type Aliases map[string]spiffe.Dialable

// Aliases are those of what the host reaches.
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

// Resolve is the service of a name: of the name itself, or of the wildcard for it.
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

// wildcard stands for one label.
const wildcard = "*."

// Covers is whether a wildcard has a name.
func Covers(pattern, name string) bool {
	parent, wild := strings.CutPrefix(pattern, wildcard)
	_, above, _ := strings.Cut(name, ".")
	return wild && above == parent
}

// IsWildcard is whether a name is of many.
func IsWildcard(name string) bool { return strings.HasPrefix(name, wildcard) }

// checkAliases is that each is a label, or one below a wildcard, in the trust domain, and of one
// service, whose ports all have it.
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
