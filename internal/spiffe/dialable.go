package spiffe

import (
	"fmt"
	"strings"
)

// Dialable is an ID that can be connected to: a service or a vertex. Only Dial and Resolve create
// one.
type Dialable struct{ id ID }

// Dial returns id as a Dialable, or an error if it cannot be connected to.
func Dial(id ID) (Dialable, error) {
	if id.kind != KindService && id.kind != KindVertex {
		return Dialable{}, fmt.Errorf("%s: a %s cannot be dialled, only a service or a vertex", id, id.kind)
	}
	return Dialable{id}, nil
}

// ID returns the identity that the other side must present.
func (d Dialable) ID() ID { return d.id }

// Render returns the user-facing name, <name>[.<node>].<trust-domain>.rete. For services,
// Resolve(Render(d), trustDomain) == d.
func Render(d Dialable) string {
	if d.id.node == "" {
		return d.id.name + "." + d.id.domain + Suffix
	}
	return d.id.name + "." + d.id.node + "." + d.id.domain + Suffix
}

// Resolve returns the service with a user-facing name in a trust domain. After the trust domain is
// removed, one label is a cluster-wide service, and two labels are <name>.<node>. It returns an
// error for any other name.
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

// SNI returns the server name (RFC 6066, section 3) that is sent as a routing hint. The receiver
// looks it up and never parses it. Distinct Dialables of a trust domain have distinct SNIs, because
// a name never begins with an underscore.
func SNI(d Dialable) string {
	if d.id.kind == KindVertex {
		return "_vertex." + Render(d)
	}
	return Render(d)
}
