package spiffe

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
)

// Kind is what a SPIFFE ID names.
type Kind string

const (
	KindNode    Kind = "node"    // a host
	KindService Kind = "service" // a service, cluster-wide or on one node
	KindUser    Kind = "user"    // a person
	KindVertex  Kind = "vertex"  // a routing point of the mesh
)

// ProxyCaller is the type of a PROXY protocol TLV that has the caller's SPIFFE ID, where
// Istio's ztunnel has it.
const ProxyCaller = 0xD0

// ProviderService returns the reserved service name of the process that answers a kind of need
// on a provider host: spiffe://<trust-domain>/service/<node>/florete-provider-<kind>. Only
// the process of kind "cert" holds the issuing key.
func ProviderService(kind string) string { return ProviderPrefix + kind }

// IsLabel reports whether text is a DNS label (RFC 1123 section 2.1) in lower case.
func IsLabel(text string) bool { return label.MatchString(text) }

var label = regexp.MustCompile("^" + LabelPattern + "$")

// ID is the SPIFFE ID of something in a cluster:
// spiffe://<trust-domain>/<kind>/<name>, or with a node,
// spiffe://<trust-domain>/<kind>/<node>/<name>, for services and vertices.
// The zero ID is no ID; every other value is valid. IDs are comparable.
type ID struct {
	domain     string
	kind       Kind
	node, name string
}

// NewID makes the ID of kind and name in a trust domain; node is empty unless
// the ID is node-scoped, which only services and vertices can be.
func NewID(trustDomain string, kind Kind, node, name string) (ID, error) {
	td, err := spiffeid.TrustDomainFromString(trustDomain)
	if err != nil || strings.Contains(trustDomain, "/") {
		return ID{}, fmt.Errorf("trust domain %q: not a SPIFFE trust domain", trustDomain)
	}
	switch kind {
	case KindService, KindVertex:
	case KindNode, KindUser:
		if node != "" {
			return ID{}, fmt.Errorf("%s %q: a %s ID has no node, found %q", kind, name, kind, node)
		}
	default:
		return ID{}, fmt.Errorf("kind %q: want node, service, user or vertex", kind)
	}
	if node != "" && !IsLabel(node) {
		return ID{}, fmt.Errorf("node %q: not a lower-case DNS label", node)
	}
	if !IsLabel(name) {
		return ID{}, fmt.Errorf("%s %q: not a lower-case DNS label", kind, name)
	}
	return ID{td.Name(), kind, node, name}, nil
}

// ParseID reads an ID from its URI form. ParseID(id.String()) == id.
func ParseID(s string) (ID, error) {
	sid, err := spiffeid.FromString(s)
	if err != nil {
		return ID{}, fmt.Errorf("SPIFFE ID %q: %w", s, err)
	}
	parts := strings.Split(strings.TrimPrefix(sid.Path(), "/"), "/")
	var id ID
	switch len(parts) {
	case 2:
		id, err = NewID(sid.TrustDomain().Name(), Kind(parts[0]), "", parts[1])
	case 3:
		id, err = NewID(sid.TrustDomain().Name(), Kind(parts[0]), parts[1], parts[2])
	default:
		err = fmt.Errorf("want spiffe://<trust-domain>/<kind>/[<node>/]<name>")
	}
	if err != nil {
		return ID{}, fmt.Errorf("SPIFFE ID %q: %w", s, err)
	}
	return id, nil
}

// TrustDomain is the ID's trust domain, such as "demo.flor".
func (id ID) TrustDomain() string { return id.domain }

// Kind is what the ID names.
func (id ID) Kind() Kind { return id.kind }

// Node is the node of a node-scoped ID, else empty.
func (id ID) Node() string { return id.node }

// Name is the last part of the ID.
func (id ID) Name() string { return id.name }

// IsZero reports whether id is no ID.
func (id ID) IsZero() bool { return id == ID{} }

// SPIFFE is the ID in go-spiffe's form. It panics on the zero ID.
func (id ID) SPIFFE() spiffeid.ID { return spiffeid.RequireFromString(id.String()) }

// String is the URI form, empty for the zero ID.
func (id ID) String() string {
	if id.IsZero() {
		return ""
	}
	return "spiffe://" + id.domain + "/" + id.Short()
}

// Short is the ID without its trust domain, as people read it: "service/outline".
func (id ID) Short() string {
	if id.node == "" {
		return string(id.kind) + "/" + id.name
	}
	return string(id.kind) + "/" + id.node + "/" + id.name
}

// ShortIn is Short for people of a trust domain, and the whole ID where it is of another.
func (id ID) ShortIn(trustDomain string) string {
	if id.domain == trustDomain {
		return id.Short()
	}
	return id.String()
}

// MarshalText writes the URI form.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads the URI form; an empty text is an error.
func (id *ID) UnmarshalText(b []byte) (err error) {
	*id, err = ParseID(string(b))
	return err
}
