package spiffe

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
)

// Kind is the type of a SPIFFE ID, such as node or service.
type Kind string

const (
	KindNode    Kind = "node"    // a host
	KindService Kind = "service" // a service, cluster-wide or on one node
	KindUser    Kind = "user"    // a person
	KindVertex  Kind = "vertex"  // a routing point of the mesh
	KindOutside Kind = "outside" // a machine without an agent, which holds a certificate
)

// ProxyCaller is the type of the field (TLV) that contains the caller's SPIFFE ID in a PROXY
// protocol header. Istio's ztunnel uses the same type.
const ProxyCaller = 0xD0

// ProviderService returns the reserved name of the service of a provider process,
// florete-provider-<kind>. The process answers this kind of need, and its SPIFFE ID is
// spiffe://<trust-domain>/service/<node>/florete-provider-<kind>. Only the process for the kind
// "cert" has the issuing key.
func ProviderService(kind string) string { return ProviderPrefix + kind }

// IsLabel reports whether text is a DNS label (RFC 1123, section 2.1) in lower case.
func IsLabel(text string) bool { return label.MatchString(text) }

var label = regexp.MustCompile("^" + LabelPattern + "$")

// ID is a SPIFFE ID of a cluster, spiffe://<trust-domain>/<kind>/<name>. For a service or vertex on
// a node, it is spiffe://<trust-domain>/<kind>/<node>/<name>. The zero ID stands for no ID, and
// every other value is valid. IDs can be compared with ==.
type ID struct {
	domain     string
	kind       Kind
	node, name string
}

// NewID returns the ID with the given kind and name in a trust domain. The node is empty, except
// for a service or a vertex on a node. NewID returns an error if the ID would be invalid.
func NewID(trustDomain string, kind Kind, node, name string) (ID, error) {
	td, err := spiffeid.TrustDomainFromString(trustDomain)
	if err != nil || strings.Contains(trustDomain, "/") {
		return ID{}, fmt.Errorf("trust domain %q: not a SPIFFE trust domain", trustDomain)
	}
	switch kind {
	case KindService, KindVertex:
	case KindNode, KindUser, KindOutside:
		if node != "" {
			return ID{}, fmt.Errorf("%s %q: a %s ID has no node, found %q", kind, name, kind, node)
		}
	default:
		return ID{}, fmt.Errorf("kind %q: want node, service, user, vertex or outside", kind)
	}
	if node != "" && !IsLabel(node) {
		return ID{}, fmt.Errorf("node %q: not a lower-case DNS label", node)
	}
	if !IsLabel(name) {
		return ID{}, fmt.Errorf("%s %q: not a lower-case DNS label", kind, name)
	}
	return ID{td.Name(), kind, node, name}, nil
}

// ParseID parses a SPIFFE ID in the form of a URI, as ID.String returns it.
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

// TrustDomain returns the trust domain of the ID, such as "demo.flor".
func (id ID) TrustDomain() string { return id.domain }

// Kind returns the type of the ID, such as KindNode.
func (id ID) Kind() Kind { return id.kind }

// Node returns the name of the node on which the service or vertex is, or "" for any other ID.
func (id ID) Node() string { return id.node }

// Name returns the last part of the ID, such as "outline".
func (id ID) Name() string { return id.name }

// IsZero reports whether the ID is the zero ID, which stands for no ID.
func (id ID) IsZero() bool { return id == ID{} }

// SPIFFE returns the ID as an ID of the library go-spiffe. It panics for the zero ID.
func (id ID) SPIFFE() spiffeid.ID { return spiffeid.RequireFromString(id.String()) }

// String returns the ID as a URI, or "" for the zero ID.
func (id ID) String() string {
	if id.IsZero() {
		return ""
	}
	return "spiffe://" + id.domain + "/" + id.Short()
}

// Short returns the ID without its trust domain, such as "service/outline", for messages to people.
func (id ID) Short() string {
	if id.node == "" {
		return string(id.kind) + "/" + id.name
	}
	return string(id.kind) + "/" + id.node + "/" + id.name
}

// ShortIn returns the ID for messages to people. For an ID in trustDomain, it is the result of
// Short, and otherwise the URI.
func (id ID) ShortIn(trustDomain string) string {
	if id.domain == trustDomain {
		return id.Short()
	}
	return id.String()
}

// MarshalText implements encoding.TextMarshaler. It returns the ID as a URI.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. It returns an error for an empty text.
func (id *ID) UnmarshalText(b []byte) (err error) {
	*id, err = ParseID(string(b))
	return err
}
