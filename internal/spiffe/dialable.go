package spiffe

import (
	"fmt"
	"strings"
)

// Dialable is an ID that can be connected to: a service or a vertex. Only the
// validating constructors Dial and Resolve make one.
type Dialable struct{ id ID }

// Dial checks that id can be connected to.
func Dial(id ID) (Dialable, error) {
	if id.kind != KindService && id.kind != KindVertex {
		return Dialable{}, fmt.Errorf("%s: a %s cannot be dialled, only a service or a vertex", id, id.kind)
	}
	return Dialable{id}, nil
}

// ID is the identity that the other side must present.
func (d Dialable) ID() ID { return d.id }

// Render is the user-facing name, <name>[.<node>].<trust-domain>.rete.
// For services Resolve(Render(d), trust domain) == d.
func Render(d Dialable) string {
	if d.id.node == "" {
		return d.id.name + "." + d.id.domain + Suffix
	}
	return d.id.name + "." + d.id.node + "." + d.id.domain + Suffix
}

// Resolve turns a user-facing name into the service it names. The caller's trust
// domain is the context: what is left of host without it says the scope, one
// label cluster-wide, two labels <name>.<node>.
func Resolve(host, trustDomain string) (Dialable, error) {
	h := strings.ToLower(strings.TrimSuffix(host, "."))
	local, ok := strings.CutSuffix(h, Suffix)
	if !ok {
		return Dialable{}, fmt.Errorf("name %q: does not end in %q", host, Suffix)
	}
	local, ok = strings.CutSuffix(local, "."+trustDomain)
	if !ok {
		return Dialable{}, fmt.Errorf("name %q: not in trust domain %q", host, trustDomain)
	}
	name, node, scoped := strings.Cut(local, ".")
	if scoped && node == "" {
		return Dialable{}, fmt.Errorf("name %q: empty label", host)
	}
	id, err := NewID(trustDomain, KindService, node, name)
	if err != nil {
		return Dialable{}, fmt.Errorf("name %q: %w", host, err)
	}
	return Dialable{id}, nil
}

// SNI is the routing hint on the wire (RFC 6066 section 3). The receiver looks it
// up and never parses it; distinct Dialables of a trust domain have distinct SNIs,
// because a name never starts with an underscore.
func SNI(d Dialable) string {
	if d.id.kind == KindVertex {
		return "_vertex." + Render(d)
	}
	return Render(d)
}
