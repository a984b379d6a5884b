package rename

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/florete/florete/internal/spiffe"
)

// change is a change of the written topology. It renames an attribute, replaces a text, or adds an
// attribute.
type change struct {
	path    []any  // of the attribute or text, with the former names
	was, to string // name or text; was is empty for an attribute that is added
	kind    changeKind
}

type changeKind int

const (
	renames changeKind = iota
	replaces
	adds
)

// renaming finds the places where a written topology names a service.
type renaming struct {
	old, new string
	topology map[string]any
	domain   string            // "demo.flor.rete", as in names of services
	needs    map[string]string // IDs of needs of the service, and the next ones
	changes  []change
}

// Topology changes the name of a service in a topology, which has the form in which people write it
// in a flake, and returns the result. The result also contains attributes that make providers keep
// databases, accounts and the like under the former name.
func Topology(topology map[string]any, old, new string) map[string]any {
	next, _ := rename(topology, old, new)
	return next
}

// rename returns the topology with the new name, and all changes that lead to it.
func rename(topology map[string]any, old, new string) (map[string]any, []change) {
	domain, _ := topology["trustDomain"].(string)
	r := &renaming{old: old, new: new, topology: topology, domain: domain + spiffe.Suffix, needs: map[string]string{}}
	r.needIDs()
	next, _ := r.value(nil, topology).(map[string]any)
	services, _ := next["services"].(map[string]any)
	service, _ := services[new].(map[string]any)
	r.keep(service)
	return next, r.changes
}

func object(v any, path ...string) map[string]any {
	for _, name := range path {
		o, _ := v.(map[string]any)
		v = o[name]
	}
	o, _ := v.(map[string]any)
	return o
}

func sorted(o map[string]any) []string { return slices.Sorted(maps.Keys(o)) }

// needIDs collects the needs of the service, which dependsOn may name.
func (r *renaming) needIDs() {
	add := func(format string, more ...any) {
		r.needs[fmt.Sprintf(format, append([]any{r.old}, more...)...)] = fmt.Sprintf(format, append([]any{r.new}, more...)...)
	}
	for _, format := range []string{"cert-service-%s", "cert-shared-%s", "jwt-service-%s", "jwt-shared-%s", "jwt-%s", "oidc-%s", "oidc--%s"} {
		add(format)
	}
	service := object(r.topology, "services", r.old)
	for kind, attribute := range map[string]string{"database": "databases", "file": "files", "git": "git", "token": "tokens"} {
		for name := range object(service[attribute]) {
			add(kind+"-%s-%s", name)
		}
	}
	for name := range object(r.topology["secrets"]) {
		add("secret-%s-%s", name)
	}
	// The needs of the cluster's own kinds keep their IDs: keep writes called.
}

// keep adds the attributes by which a service keeps what providers have under its former name.
func (r *renaming) keep(service map[string]any) {
	add := func(of map[string]any, called string, path ...any) {
		if written, _ := of["called"].(string); of == nil || written != "" {
			return
		}
		of["called"] = called
		r.changes = append(r.changes, change{append(append([]any{"services", r.old}, path...), "called"), "", called, adds})
	}
	each := func(attribute string, called func(name string) string) {
		of := object(service[attribute])
		for _, name := range sorted(of) {
			add(object(of[name]), called(name), attribute, name)
		}
	}
	each("databases", func(name string) string { return strings.ReplaceAll(r.old+"_"+name, "-", "_") })
	each("git", func(name string) string { return "florete-" + r.old + "-" + name })
	each("needs", func(string) string { return r.old })
	if sso := object(service["sso"]); sso["mode"] == "oidc" || sso["mode"] == "gate" {
		add(sso, r.old, "sso")
	}
}

// value returns a value of the topology with the new name.
func (r *renaming) value(path []any, v any) any {
	path = slices.Clip(path)
	switch v := v.(type) {
	case map[string]any:
		next := map[string]any{}
		for _, name := range sorted(v) {
			is := r.name(path, name)
			if is != name {
				r.changes = append(r.changes, change{append(path, name), name, is, renames})
			}
			next[is] = r.value(append(path, name), v[name])
		}
		return next
	case []any:
		next := make([]any, len(v))
		for i := range v {
			next[i] = r.value(append(path, float64(i)), v[i])
		}
		return next
	case string:
		next := r.text(path, v)
		if next != v {
			r.changes = append(r.changes, change{path, v, next, replaces})
		}
		return next
	}
	return v
}

// matches reports whether names of attributes follow a pattern, in which "*" is any name. Indices in
// lists do not count.
func matches(path []any, pattern string) bool {
	want := strings.Split(pattern, ".")
	path = slices.DeleteFunc(slices.Clone(path), func(e any) bool { _, index := e.(float64); return index })
	if len(path) != len(want) {
		return false
	}
	for i, name := range path {
		if want[i] != "*" && want[i] != name {
			return false
		}
	}
	return true
}

func matchesAny(path []any, patterns ...string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(path, p) })
}

// name returns the new name of an attribute.
func (r *renaming) name(path []any, name string) string {
	switch {
	case matches(path, "services") && name == r.old:
		return r.new
	case matches(path, "roles.*.logins"):
		return r.part(name)
	case matchesAny(path, "hosts.*.callers", "hostGroups.*.callers"):
		return r.identity(name)
	}
	return name
}

// text returns a text of the topology with the new name.
func (r *renaming) text(path []any, text string) string {
	switch {
	case matchesAny(path, "roles.*.services", "roles.*.except", "serviceGroups.*", "outside.*.reaches", "expect.reaches", "expect.not"):
		return r.part(text)
	case matchesAny(path, "services.*.placement.apart", "services.*.placement.apartByGroup", "hosts.*.keeps", "hostGroups.*.keeps", "secrets.*.readers.service", "providers.database.servers.*.service", "providers.git.forges.*.service"):
		if text == r.old {
			return r.new
		}
		return text
	case matches(path, "expect.who"):
		user, host := object(r.topology, "users")[r.old], object(r.topology, "hosts")[r.old]
		if text == r.old && user == nil && host == nil {
			return r.new
		}
		return r.identity(text)
	case matchesAny(path, "tenants.*.policies.subject", "tenants.*.groupings.member"):
		return r.identity(text)
	case matches(path, "acknowledge.place"):
		if rest, ok := strings.CutPrefix(text, "services."+r.old); ok && (rest == "" || rest[0] == '.') {
			return "services." + r.new + rest
		}
		return text
	case len(path) > 1 && path[len(path)-2] == "dependsOn":
		if next, ok := r.needs[text]; ok {
			return next
		}
		return text
	}
	return r.address(text)
}

var (
	part     = regexp.MustCompile(`^([a-z0-9-]+)(@[^:]*)?(:.*)?$`)
	identity = regexp.MustCompile(`^(service/(?:[a-z0-9-]+/)?)([a-z0-9-]+)$`)
)

// part returns the name of a service or of a part of one, such as "wiki@eu:metrics".
func (r *renaming) part(text string) string {
	of := part.FindStringSubmatch(text)
	if of == nil || of[1] != r.old {
		return text
	}
	if cluster := strings.TrimPrefix(of[2], "@"); cluster != "" {
		for _, elsewhere := range []string{"federated", "clusters"} {
			if object(r.topology, elsewhere, cluster, "services")[r.old] != nil {
				return text
			}
		}
	}
	return r.new + of[2] + of[3]
}

// identity returns the name of an identity, such as "service/wiki" or "service/forge/wiki".
func (r *renaming) identity(text string) string {
	of := identity.FindStringSubmatch(text)
	if of == nil || of[2] != r.old {
		return text
	}
	return of[1] + r.new
}

// address returns a text, such as a URL, with the new name of the service in the cluster.
func (r *renaming) address(text string) string {
	if !strings.Contains(text, r.domain) {
		return text
	}
	called := regexp.MustCompile(`(^|[^a-z0-9.-])` + regexp.QuoteMeta(r.old) + `((?:\.[a-z0-9-]+)?\.` + regexp.QuoteMeta(r.domain) + `)($|[^a-z0-9.-])`)
	return called.ReplaceAllString(text, "${1}"+r.new+"${2}${3}")
}
