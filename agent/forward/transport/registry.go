package transport

import (
	"errors"
	"fmt"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
)

// Registry maps the server name (SNI) of an incoming connection to the target that it is for. The
// SNI is a routing hint that is looked up and never parsed; only the certificate proves the target.
type Registry struct{ bySNI map[string]spiffe.ID }

// NewRegistry returns the registry for the services that this host publishes. The registry contains
// the SNIs and the opaque names of the services. If this host is a relay, it also contains the SNI
// of the relay. If a target is not valid, NewRegistry returns an error, and a registry with all
// valid targets.
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

// Lookup returns the SPIFFE ID of the target with the given SNI. It returns false if this host does
// not publish such a target.
func (r Registry) Lookup(sni string) (spiffe.ID, bool) {
	id, ok := r.bySNI[sni]
	return id, ok
}
