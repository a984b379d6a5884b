package plan

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
)

// The name of a service determines where a program's data goes, so the target of a name is a right.
// Each alias is a right. Names that are not in a list (those of services, those that match a
// wildcard, and port numbers) are compared on each host: a name that leads to another service than
// before is a right on that host.

// alias returns the right of a service to answer under an additional name.
func alias(a at) []fact { return one(Right{a.id(a.up[0]["id"]), "answer as", shown(a.v)}) }

// leads maps each name to the service or port that callers of the name reach on a host.
type leads struct {
	exact map[string]string
	wild  map[string]string
}

// at returns the target of a name, or "". An exact name takes precedence over a wildcard.
func (l leads) at(name string) string {
	if to := l.exact[name]; to != "" {
		return to
	}
	_, above, _ := strings.Cut(name, ".")
	return l.wild["*."+above]
}

// insideAndOut returns the targets of names on a host. The first result applies to programs of the
// host, and the second to strangers who use the host as an ingress.
func insideAndOut(manifest map[string]any) (inside, out leads) {
	a := at{walk: &walk{root: manifest}}
	inside, out = leads{map[string]string{}, map[string]string{}}, leads{map[string]string{}, map[string]string{}}
	add := func(l leads, name, to string) {
		if document.IsWildcard(name) {
			l.wild[name] = to
		} else if name != "" {
			l.exact[name] = to
		}
	}
	for _, v := range list(object(manifest["forwarder"])["reach"]) {
		entry := object(v)
		service, name := a.id(entry["id"]), ""
		if id, err := spiffe.ParseID(shown(entry["id"])); err == nil {
			if d, err := spiffe.Dial(id); err == nil {
				name = spiffe.Render(d)
			}
		}
		add(inside, name, service)
		for _, alias := range list(entry["aliases"]) {
			add(inside, shown(alias), service)
		}
		if listen, err := netip.ParseAddrPort(shown(entry["listen"])); err == nil && name != "" {
			_, number, _ := strings.Cut(listen.String(), listen.Addr().String()+":")
			if protocol := shown(entry["protocol"]); protocol != "" {
				number += "/" + protocol
			}
			add(inside, name+":"+number, a.port(entry))
		}
		for _, public := range append(list(entry["tlsAliases"]), entry["tlsName"]) {
			add(out, shown(public), a.port(entry))
		}
	}
	return inside, out
}

// names records the names on a host that lead to another target than before.
func (d *delta) names(host string, was, is documents) error {
	var inside, out [2]leads
	for s, docs := range []documents{was, is} {
		var manifest map[string]any
		if err := read(docs[document.DocManifest], &manifest); err != nil {
			return err
		}
		inside[s], out[s] = insideAndOut(manifest)
	}
	differ := func(l [2]leads, right func(name, to string) fact) {
		names := maps.Clone(l[before].exact)
		maps.Copy(names, l[after].exact)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			led, leads := l[before].at(name), l[after].at(name)
			if led != leads && led != "" && leads != "" {
				d.note(before, []fact{right(name, led)})
				d.note(after, []fact{right(name, leads)})
			}
		}
	}
	differ(inside, func(name, to string) fact {
		return fact{Right: Right{to, "answer as", name + " on " + host}, because: []Right{{to, "answer as", name}}}
	})
	differ(out, func(name, to string) fact {
		return fact{Right: entrance(host, name, to)}
	})
	return nil
}

// entrance returns the right of strangers to use a public name.
func entrance(host, name, service string) Right {
	return Right{"anyone", "come in through", "host " + host + " as " + name + " to " + service}
}

// publicName returns the rights of strangers to use a public name. If the name is open to some
// networks only, delta.strangers compares the networks.
func publicName(a at) []fact {
	if object(a.up[0]["ingress"])["from"] != nil {
		return nil
	}
	service, who := a.port(a.up[0]), signedIn("anyone", gateOf(object(a.root), object(a.up[0])))
	comes := entrance(a.host(), shown(a.v), service)
	comes.Who = who
	return one(comes, Right{who, "reach", service})
}
