package rules

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/florete/florete/internal/spiffe"
)

// Any is the wildcard in an object. It stands for all namespaces of a tenant, or for all objects of
// a kind in a namespace.
const Any = "*"

// Object is the name of a resource of a tenant, and stands for the resource with everything in it:
//
//	tenant:acme                      everything of the tenant
//	namespace:acme/*                 all of its namespaces
//	namespace:acme/payments          one namespace, with its content
//	stream:acme/payments/*           all objects of a kind in a namespace; the kind is any word but the two above
//	stream:acme/payments/orders      one object
//
// Each line covers the lines below it. Every object names exactly one tenant, and an object with a
// kind names exactly one namespace, so tenant:* and stream:*/* are not valid. The zero Object
// covers nothing.
type Object struct {
	kind, tenant, namespace, name string
}

const (
	kindTenant    = "tenant"
	kindNamespace = "namespace"
)

var (
	name   = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$`)
	action = regexp.MustCompile(`^[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*){0,3}$`)
)

// TenantObject returns the object that covers all resources of a tenant.
func TenantObject(tenant string) Object { return Object{kind: kindTenant, tenant: tenant} }

// ParseObject parses the text of an object, such as "stream:acme/payments/orders".
func ParseObject(s string) (Object, error) {
	o, err := parse(s)
	if err != nil {
		return Object{}, fmt.Errorf("object %.200q: %w", s, err)
	}
	return o, nil
}

func parse(s string) (o Object, err error) {
	kind, rest, found := strings.Cut(s, ":")
	if !found || !spiffe.IsLabel(kind) {
		return o, errors.New("want tenant:T, namespace:T/N, namespace:T/*, KIND:T/N/NAME or KIND:T/N/*")
	}
	parts := strings.Split(rest, "/")
	o = Object{kind: kind, tenant: parts[0]}
	want := map[string]int{kindTenant: 1, kindNamespace: 2}[kind]
	want = cmp.Or(want, 3)
	switch {
	case o.tenant == Any:
		return o, errors.New("it is of every tenant: want one by name")
	case len(parts) != want:
		return o, fmt.Errorf("%d parts behind the colon, want %d", len(parts), want)
	case !spiffe.IsLabel(o.tenant):
		return o, fmt.Errorf("tenant %.80q: want lower-case letters, digits and inner hyphens", o.tenant)
	case want == 1:
		return o, nil
	}
	o.namespace = parts[1]
	switch {
	case o.namespace == Any && want == 3:
		return o, fmt.Errorf("it is of every namespace: want one by name, or namespace:%s/*", o.tenant)
	case o.namespace != Any && !spiffe.IsLabel(o.namespace):
		return o, fmt.Errorf("namespace %.80q: want lower-case letters, digits and inner hyphens, or *", o.namespace)
	case want == 2:
		return o, nil
	}
	o.name = parts[2]
	if o.name != Any && !name.MatchString(o.name) {
		return o, fmt.Errorf("name %.150q: want letters, digits, dots, hyphens and underscores, or *", o.name)
	}
	return o, nil
}

// ParseAction returns s unchanged if it is a valid action, and otherwise an error. An action
// consists of words separated by dots, such as "stream.publish", and contains no wildcards.
func ParseAction(s string) (string, error) {
	if len(s) > 64 || !action.MatchString(s) {
		return "", fmt.Errorf("action %.100q: want words with dots between them, such as \"stream.publish\", and no *", s)
	}
	return s, nil
}

// String returns the text of the object, which ParseObject parses.
func (o Object) String() string {
	switch o.kind {
	case "":
		return ""
	case kindTenant:
		return o.kind + ":" + o.tenant
	case kindNamespace:
		return o.kind + ":" + o.tenant + "/" + o.namespace
	}
	return o.kind + ":" + o.tenant + "/" + o.namespace + "/" + o.name
}

// Tenant returns the name of the tenant to which the object belongs.
func (o Object) Tenant() string { return o.tenant }

// Namespace returns the name of the namespace that contains the object. For all namespaces of a
// tenant, it returns Any. For a whole tenant, it returns "".
func (o Object) Namespace() string { return o.namespace }

// Covers reports whether o equals or contains the other object.
func (o Object) Covers(other Object) bool {
	switch {
	case o.kind == "" || other.kind == "" || o.tenant != other.tenant:
		return false
	case o.kind == kindTenant:
		return true
	case other.kind == kindTenant:
		return false
	case o.kind == kindNamespace:
		return o.namespace == Any || o.namespace == other.namespace
	}
	return o.kind == other.kind && o.namespace == other.namespace && (o.name == Any || o.name == other.name)
}

// Intersect returns the resources that two objects have in common: the smaller object if the other
// covers it. If neither covers the other, the second result is false.
func Intersect(a, b Object) (Object, bool) {
	switch {
	case a.Covers(b):
		return b, true
	case b.Covers(a):
		return a, true
	}
	return Object{}, false
}

// Permission permits its bearer an action on an object.
type Permission struct {
	Action string `json:"action"`
	Object Object `json:"object"`
}

// MarshalText implements encoding.TextMarshaler.
func (o Object) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText parses an object, and returns an error for any other text.
func (o *Object) UnmarshalText(b []byte) (err error) {
	*o, err = ParseObject(string(b))
	return err
}
