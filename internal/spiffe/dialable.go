package spiffe

import (
	"fmt"
	"strings"
)

// Dialable is the SPIFFE ID of a service or a vertex. Programs can connect only to these two types
// of ID. Only Dial and Resolve create a Dialable.
type Dialable struct{ id ID }

// Dial returns id as a Dialable. It returns an error if id is not the ID of a service or a vertex.
func Dial(id ID) (Dialable, error) {
	if id.kind != KindService && id.kind != KindVertex {
		return Dialable{}, fmt.Errorf("%s: a %s cannot be dialled, only a service or a vertex", id, id.kind)
	}
	return Dialable{id}, nil
}

// ID returns the SPIFFE ID that the other side of a connection must prove.
func (d Dialable) ID() ID { return d.id }

// Render returns the host name by which people and programs call a service:
// <name>[.<node>].<trust-domain>.rete. Resolve is the inverse for services.
func Render(d Dialable) string {
	if d.id.node == "" {
		return d.id.name + "." + d.id.domain + Suffix
	}
	return d.id.name + "." + d.id.node + "." + d.id.domain + Suffix
}

// Resolve returns the service with the given host name, such as wiki.demo.flor.rete, in a trust
// domain. The name consists of <name> for a service of the whole cluster, or <name>.<node> for a
// service on a node, followed by the trust domain and ".rete". Resolve returns an error for any
// other name.
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

// SNI returns the server name (RFC 6066, section 3) by which a forwarder tells another one to which
// target it connects. The receiver looks the server name up and never parses it. Different targets
// of a trust domain have different server names.
func SNI(d Dialable) string {
	if d.id.kind == KindVertex {
		return "_vertex." + Render(d)
	}
	return Render(d)
}
