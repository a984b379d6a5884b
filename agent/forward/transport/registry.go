package transport

import (
	"errors"
	"fmt"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
)

// Registry finds the target that an SNI stands for. The SNI is a routing hint
// that is looked up and never parsed; what proves the target is its certificate.
type Registry struct{ bySNI map[string]spiffe.ID }

// NewRegistry makes the registry of what this host publishes. With an error it has
// what can be looked up all the same.
func NewRegistry(published []document.Published) (Registry, error) {
	r := Registry{map[string]spiffe.ID{}}
	var errs []error
	for _, p := range published {
		d, err := spiffe.Dial(p.ID)
		if err != nil {
			errs = append(errs, fmt.Errorf("publish: %w", err))
			continue
		}
		sni := spiffe.SNI(d)
		if other, ok := r.bySNI[sni]; ok && (other != p.ID || p.Port == "") {
			errs = append(errs, fmt.Errorf("publish: %s and %s share the SNI %q", other, p.ID, sni))
			continue
		}
		r.bySNI[sni] = p.ID
	}
	return r, errors.Join(errs...)
}

// Lookup is the full identity behind an SNI.
func (r Registry) Lookup(sni string) (spiffe.ID, bool) {
	id, ok := r.bySNI[sni]
	return id, ok
}
