package document

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/florete/florete/internal/spiffe"
)

// longestPath is the maximum number of relays on a path.
const longestPath = 2

// opaque matches the labels of relayed paths and the opaque names of services.
var opaque = regexp.MustCompile(`^[0-9a-f]{32}$`)

func checkLabel(label string) error {
	if !opaque.MatchString(label) {
		return fmt.Errorf("label %q, want 32 hex digits", label)
	}
	return nil
}

// checkRelays checks the relays to which the host connects. If the host is itself a relay, it also
// checks the routes of this relay.
func (f Forwarder) checkRelays() error {
	for name, r := range f.Relays {
		if r.ID.Kind() != spiffe.KindVertex || r.ID.Name() != name {
			return fmt.Errorf("relay %q: id %s, want the vertex of that name", name, r.ID)
		}
		if err := r.Addresses.check(); err != nil {
			return fmt.Errorf("relay %q: %w", name, err)
		}
		if err := r.Transport.check(); err != nil {
			return fmt.Errorf("relay %q: %w", name, err)
		}
	}
	for i, name := range f.Uplinks {
		if _, ok := f.Relays[name]; !ok {
			return fmt.Errorf("uplink %q: not among the relays of this host", name)
		}
		if i > 0 && name <= f.Uplinks[i-1] {
			return fmt.Errorf("uplink %q: given twice, or not sorted", name)
		}
	}
	if f.Relay == nil {
		return nil
	}
	if f.Relay.ID.Kind() != spiffe.KindVertex {
		return fmt.Errorf("relay: id %s, want a vertex", f.Relay.ID)
	}
	for i, r := range f.Relay.Routes {
		if err := r.check(f.Relays); err != nil {
			return fmt.Errorf("route %s: %w", r.Label, err)
		}
		if i > 0 && r.Label <= f.Relay.Routes[i-1].Label {
			return fmt.Errorf("route %s: given twice, or not sorted", r.Label)
		}
	}
	return nil
}

func (r RelayRoute) check(relays map[string]Relay) error {
	if err := checkLabel(r.Label); err != nil {
		return err
	}
	switch r.To.Kind() {
	case spiffe.KindNode:
		if r.Next != "" {
			return fmt.Errorf("next %q beside %s, want none at the last relay", r.Next, r.To)
		}
	case spiffe.KindVertex:
		if err := checkLabel(r.Next); err != nil {
			return fmt.Errorf("next: %w", err)
		}
		if relays[r.To.Name()].ID != r.To {
			return fmt.Errorf("to %s: not among the relays of this host", r.To)
		}
	default:
		return fmt.Errorf("to %s, want a node or a vertex", r.To)
	}
	if len(r.From) == 0 {
		return fmt.Errorf("no from, want the nodes that may use it")
	}
	for _, id := range r.From {
		if id.Kind() != spiffe.KindNode && id.Kind() != spiffe.KindVertex {
			return fmt.Errorf("from %s, want a node or a vertex", id)
		}
	}
	return nil
}

// checkPaths checks the paths on which a host reaches the service through relays.
func (r Reachable) checkPaths(relays map[string]Relay) error {
	for _, v := range r.Via {
		if len(v.By) == 0 || len(v.By) > longestPath || slices.Contains(v.By[1:], v.By[0]) {
			return fmt.Errorf("path by %v, want one relay or two", v.By)
		}
		if _, ok := relays[v.By[0]]; !ok {
			return fmt.Errorf("path by %v: %q is not among the relays of this host", v.By, v.By[0])
		}
		if err := checkLabel(v.Label); err != nil {
			return fmt.Errorf("path by %v: %w", v.By, err)
		}
	}
	if (len(r.Via) > 0 || r.OpaqueName != "") && !opaque.MatchString(r.OpaqueName) {
		return fmt.Errorf("opaqueName %q, want 32 hex digits", r.OpaqueName)
	}
	return nil
}
