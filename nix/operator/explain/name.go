package explain

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/terminal"
)

// Principal finds the principal for a name that a person typed: a SPIFFE ID, "user/alice",
// "user:alice", or just "alice" if only one principal has that name. If there is no such principal,
// the error suggests similar names.
func (a *Access) Principal(name string) (Principal, error) {
	id, err := a.find(name, slices.Collect(maps.Keys(a.principals)))
	if err != nil {
		for _, is := range a.others(name) {
			return Principal{}, fmt.Errorf("cluster %s has no user, node or service %q: it is %s", a.t.Name, name, is)
		}
	}
	return a.principals[id], err
}

// others describes hosts, roles and other parts of the cluster that have this name but are not
// principals. It suggests the names to use instead.
func (a *Access) others(name string) (all []string) {
	if _, ok := a.t.Roles[strings.TrimPrefix(name, "role/")]; ok {
		role := strings.TrimPrefix(name, "role/")
		holders := "nobody holds it"
		if ids := a.holders[role]; len(ids) > 0 {
			holders = "want one who holds it, such as " + called(ids[0], a.t.TrustDomain)
		}
		all = append(all, "a role, "+holders)
	}
	if _, ok := a.t.Teams[name]; ok {
		var users []string
		for user, u := range a.t.Users {
			if slices.Contains(u.Teams, name) {
				users = append(users, "user/"+user)
			}
		}
		slices.Sort(users)
		switch {
		case len(users) > 0:
			all = append(all, "a team, want one who is in it, such as "+users[0])
		default:
			all = append(all, "a team, nobody is in it")
		}
	}
	if _, ok := a.t.ServiceGroups[name]; ok {
		all = append(all, "a group of services, which reaches nothing itself: want one of "+strings.Join(a.t.ServiceGroups[name], ", "))
	}
	return all
}

// Service finds the service for a name that a person typed, and returns the name of the service in
// the topology. The typed name can be a SPIFFE ID, "service/wiki", "wiki", an alias, the name that
// programs use ("wiki.demo.flor.rete"), or a URL. If the service has an identity on each host,
// "wiki@forge" and "service/forge/wiki" mean the service on that host. "tickets@blue" means a
// service of another cluster.
//
// One port of a service is named as "wiki:metrics", or by a URL with the port number that callers
// use.
func (a *Access) Service(name string) (string, error) {
	at := strings.LastIndexByte(name, ':')
	if at < 0 {
		return a.service(name)
	}
	service, err := a.service(name[:at])
	of, _ := a.target(service)
	ports := a.t.Services[of].Ports
	wanted, _, _ := strings.Cut(name[at+1:], "/")
	if _, isNumber := strconv.Atoi(wanted); err == nil && ports == nil && isNumber == nil && !strings.Contains(service, ":") {
		only := a.t.Services[of].ListenPort
		// A URL may contain a public name with the ingress's port.
		if only != 0 && !strings.Contains(name, "://") && wanted != strconv.Itoa(only) {
			return "", fmt.Errorf("service %s has no port %s, want %d, at which callers reach it, or %s alone", of, wanted, only, service)
		}
		return service, nil
	}
	if err != nil || ports == nil || strings.Contains(service, ":") {
		return a.service(name)
	}
	for port, p := range ports {
		if wanted == port || wanted == strconv.Itoa(p.ListenPort) {
			return service + ":" + port, nil
		}
	}
	return "", fmt.Errorf("service %s has no port %q, it has %s", of, wanted, strings.Join(slices.Sorted(maps.Keys(ports)), ", "))
}

func (a *Access) service(name string) (string, error) {
	if service := strings.TrimPrefix(a.short(name), "service/"); a.has(service) {
		return service, nil
	}
	if service, ok := a.aliased(name); ok {
		return service, nil
	}
	if service, ok := a.elsewhere(name); ok {
		return service, nil
	}
	var ids []spiffe.ID
	for _, s := range a.t.Services {
		ids = append(ids, s.IDs...)
	}
	id, err := a.find(name, ids)
	if h, ok := a.t.Hosts[strings.TrimPrefix(a.short(name), "node/")]; ok && err != nil && len(h.Services) > 0 {
		return "", fmt.Errorf("cluster %s has no service %q, it is a host with %s", a.t.Name, name, strings.Join(h.Services, ", "))
	}
	if err == nil && a.foreign[id.String()] != "" {
		return id.String(), nil
	}
	if err == nil && id.Node() != "" {
		return id.Name() + "@" + id.Node(), nil
	}
	return id.Name(), err
}

func (a *Access) has(service string) bool {
	_, ok := a.t.Services[service]
	return ok
}

// short returns a name in the form of spiffe.ID.Short, such as "service/forge/wiki". A bare name is
// returned unchanged.
func (a *Access) short(name string) string {
	if short, ok := strings.CutPrefix(name, "spiffe://"+a.t.TrustDomain+"/"); ok {
		return short
	}
	host := name
	if u, err := url.Parse(name); err == nil && u.Host != "" {
		host = u.Hostname()
	}
	if alias, whole := strings.CutSuffix(host, "."+a.t.TrustDomain+spiffe.Suffix); whole {
		if service, ok := a.aliased(alias); ok {
			return "service/" + service
		}
	}
	if d, err := spiffe.Resolve(host, a.t.TrustDomain); err == nil {
		return d.ID().Short()
	}
	return a.own(host, strings.Replace(name, ":", "/", 1))
}

// own resolves the forms of names that only services have: public names, and "forge/shell",
// "shell.forge" and "shell@forge" for the instance of one host.
func (a *Access) own(host, name string) string {
	for service, s := range a.t.Services {
		if s.TLSName != "" && s.TLSName == host || slices.Contains(s.TLSAliases, host) || s.Redirects[host] != "" {
			return "service/" + service
		}
	}
	for service, s := range a.t.Services {
		if slices.ContainsFunc(s.TLSAliases, func(alias string) bool { return document.Covers(alias, host) }) {
			return "service/" + service
		}
	}
	short := strings.TrimPrefix(name, "service/")
	on, own, found := strings.Cut(short, "/")
	for _, sign := range []string{".", "@"} {
		if !found {
			own, on, found = strings.Cut(short, sign)
		}
	}
	if s, known := a.t.Services[own]; found && known && s.Scoped() && slices.Contains(s.Hosts, on) {
		return "service/" + on + "/" + own
	}
	return name
}

// elsewhere returns the SPIFFE ID of a service of another cluster, for a name such as
// "tickets@blue".
func (a *Access) elsewhere(name string) (string, bool) {
	service, cluster, _ := strings.Cut(name, "@")
	domain, services := a.t.Federated[cluster].TrustDomain, a.t.Federated[cluster].Services
	if c, own := a.t.Clusters[cluster]; own {
		domain, services = a.t.TrustDomain, c.Services
	}
	id, err := spiffe.ParseID("spiffe://" + domain + "/service/" + service)
	_, known := services[id]
	return id.String(), known && err == nil
}

// aliased returns the service that has an alias. The alias is given without the trust domain.
func (a *Access) aliased(name string) (string, bool) {
	for _, has := range []func(alias string) bool{
		func(alias string) bool { return alias == name },
		func(alias string) bool { return document.Covers(alias, name) },
	} {
		for service, s := range a.t.Services {
			if slices.ContainsFunc(s.Aliases, has) {
				return service, true
			}
		}
	}
	return "", false
}

func (a *Access) find(name string, among []spiffe.ID) (spiffe.ID, error) {
	short := a.short(name)
	var found []spiffe.ID
	known := make([]string, 0, 2*len(among))
	for _, id := range among {
		if id.TrustDomain() != a.t.TrustDomain {
			if name == id.String() || name == called(id, a.t.TrustDomain) || dials(name, id) {
				return id, nil
			}
			known = append(known, id.String())
			continue
		}
		if id.Short() == short || id.Name() == short {
			found = append(found, id)
		}
		known = append(known, id.Short(), id.Name())
	}
	slices.SortFunc(found, compareID)
	if shared := a.shared(found); shared != nil {
		found = shared
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return spiffe.ID{}, fmt.Errorf("cluster %s has no %q%s", a.t.Name, name, meant(short, known))
	default:
		return spiffe.ID{}, fmt.Errorf("cluster %s has several %q: %s", a.t.Name, name, listed(found, a.t.TrustDomain))
	}
}

// dials reports whether programs call the service with this ID by the given name or URL.
func dials(name string, id spiffe.ID) bool {
	if u, err := url.Parse(name); err == nil && u.Host != "" {
		name = u.Hostname()
	}
	d, err := spiffe.Dial(id)
	return err == nil && spiffe.Render(d) == name
}

// shared returns the identity that all instances of a service share, if all IDs in found belong to
// that service. Otherwise it returns nil.
func (a *Access) shared(found []spiffe.ID) []spiffe.ID {
	for _, id := range found {
		s, known := a.t.Services[id.Name()]
		if known && s.Scope == "both" && id.Node() == "" && !slices.ContainsFunc(found, func(o spiffe.ID) bool { return !slices.Contains(s.IDs, o) }) {
			return []spiffe.ID{id}
		}
	}
	return nil
}

// meant returns a suggestion for a name that is not known: the most similar known name.
func meant(name string, known []string) string {
	slices.Sort(known)
	best := terminal.Suggest(name, known)
	if kind, _, found := strings.Cut(name, "/"); best == "" && found {
		of := slices.DeleteFunc(slices.Clone(known), func(k string) bool { return !strings.HasPrefix(k, kind+"/") })
		if n := len(of); n > 0 && n < 10 {
			return ", it has " + strings.Join(of, ", ")
		}
	}
	if best == "" {
		var some []string
		for _, kind := range []string{"user/", "node/", "service/"} {
			if i := slices.IndexFunc(known, func(k string) bool { return strings.HasPrefix(k, kind) }); i >= 0 {
				some = append(some, known[i])
			}
		}
		if len(some) == 0 {
			return ""
		}
		return ", write for example " + strings.Join(some, " or ")
	}
	return fmt.Sprintf(", did you mean %q?", best)
}

func compareID(a, b spiffe.ID) int {
	return cmp.Or(cmp.Compare(a.Short(), b.Short()), cmp.Compare(a.TrustDomain(), b.TrustDomain()))
}

// called formats an ID for people in a trust domain. An ID in that domain is shown as "user/alice",
// and an ID in another domain as "user/alice of blue.example".
func called(id spiffe.ID, domain string) string {
	if id.TrustDomain() == domain {
		return id.Short()
	}
	return id.Short() + " of " + id.TrustDomain()
}

func listed(ids []spiffe.ID, domain string) string {
	var b strings.Builder
	for i, id := range ids {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(called(id, domain))
	}
	return b.String()
}
