package transport

import (
	"errors"
	"fmt"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
)

// Registry finds the target that a peer wants to reach, by the server name (SNI) of the incoming
// connection. The name only serves to choose a certificate: it is looked up and never parsed, and
// the certificate alone proves the target.
type Registry struct{ bySNI map[string]spiffe.ID }

// NewRegistry returns the registry of the targets on this host: the services that it publishes,
// with their opaque names, and the host itself if it is a relay. If a target is invalid,
// NewRegistry returns an error together with a registry of the valid targets.
func NewRegistry(f document.Forwarder) (Registry, error) {
	r := Registry{map[string]spiffe.ID{}}
	var errs []error
	if f.Relay != nil {
		if d, err := spiffe.Dial(f.Relay.ID); err != nil {
			errs = append(errs, fmt.Errorf("relay: %w", err))
		} else {
			r.bySNI[spiffe.SNI(d)] = f.Relay.ID
		}
	}
	for _, p := range f.Publish {
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
		if p.OpaqueName != "" {
			r.bySNI[p.OpaqueName] = p.ID
		}
	}
	return r, errors.Join(errs...)
}

// Lookup returns the SPIFFE ID of the target with the given SNI. It returns false if this host has
// no such target.
func (r Registry) Lookup(sni string) (spiffe.ID, bool) {
	id, ok := r.bySNI[sni]
	return id, ok
}
