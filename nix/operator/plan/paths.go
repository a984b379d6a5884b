package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A relay carries connections of others without being able to read or change them. What it learns
// is which hosts exchange data through it, when and how much. That is shown as rights of the
// relay's host: to relay at all, to relay for a host, to pass connections on to a host, and to see
// who talks to whom.

// relaying returns the right of a relay's host to relay connections.
func relaying(a at) []fact { return one(Right{a.node(), "relay", "connections of other hosts"}) }

// relayFor returns the right of an identity to relay for a host that accepts it as a relay.
func relayFor(a at) []fact { return one(Right{a.id(a.v), "relay for", a.node()}, join(a.node())) }

// uplink returns the right of a relay to which a host keeps a connection.
func uplink(a at) []fact {
	return one(Right{"node/" + shown(a.v), "pass connections on to", a.node()}, join(a.node()))
}

// talk returns the right of a relay on a path to see who uses the path. It is no right to a
// service, because the host at the end of the path decides what the caller reaches.
func talk(a at) []fact {
	return one(Right{a.node(), "see when and how much", a.id(a.v) + " sends to " + a.id(a.up[0]["to"])})
}

// shownAddress returns the right of callers to learn the address of a host that is hidden on the
// other side of the change.
func shownAddress(host string) fact {
	return fact{Right: Right{"callers of services on " + host, "learn", "the addresses of " + host}}
}

// meets returns the right of other hosts to learn a host's address from relays.
func meets(a at) []fact {
	return one(Right{"hosts that exchange data with " + a.node() + " through relays", "learn", "its address"})
}

// relayed describes a change of the relays that a host calls, or of the connections that the host
// relays.
func (c Change) relayed(section, element string, rest []string, value string) (noun, words string) {
	whole := cmp.Or(c.After, c.Before)
	switch {
	case section == "relays" && element == "":
		return "relay", "calls " + some(prefixed("relay ", slices.Sorted(maps.Keys(object(whole)))), 6)
	case section == "relays" && len(rest) == 0:
		return "relay", "calls relay " + element
	case section == "relays" && rest[0] == "transport":
		return "transport", "calls relay " + element + " over " + value
	case section == "relays":
		return "address of a relay", "calls relay " + element + " at " + value
	case section == "uplinks":
		names := []string{value}
		if isList(whole) {
			names = names[:0]
			for _, v := range list(whole) {
				names = append(names, shown(v))
			}
		}
		return "uplink", "keeps a connection to " + some(prefixed("relay ", names), 6)
	case element == "":
		words = "relays connections"
		for _, r := range list(object(whole)["routes"]) {
			words += ", " + route(r)
		}
		return "relayed connection", words
	case element == "routes" && len(rest) == 1:
		return "relayed connection", "relays connections " + route(whole)
	case element == "limits" && len(rest) == 1:
		return "limit", "relays connections of each host up to " + rest[0] + ": " + value
	}
	return "relayed connection", fmt.Sprintf("relays connections, %s: %s", strings.Join(append([]string{element}, rest...), "."), value)
}

// route describes a route of a relay.
func route(v any) string {
	r := object(v)
	var from []string
	for _, id := range list(r["from"]) {
		from = append(from, shown(id))
	}
	return "from " + some(from, 4) + " to " + shown(r["to"])
}

// by names the relays of one or several paths.
func by(c Change, value string) string {
	if c.Before != nil && c.After != nil {
		return value
	}
	whole := cmp.Or(c.After, c.Before)
	paths := list(whole)
	if !isList(whole) {
		paths = []any{whole}
	}
	var words []string
	for _, p := range paths {
		var names []string
		for _, name := range list(object(p)["by"]) {
			names = append(names, shown(name))
		}
		words = append(words, strings.Join(names, " and then "))
	}
	return strings.Join(words, " or ")
}

func prefixed(prefix string, names []string) (all []string) {
	for _, name := range names {
		all = append(all, prefix+name)
	}
	return all
}
