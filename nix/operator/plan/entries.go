package plan

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/florete/florete/internal/document"
)

// An entry is a listener at which callers without an agent reach a service. They may come from
// anywhere, from networks that prove nothing but an address, or have a certificate.

// enters returns the rights of callers without an identity to reach a service through an entry.
func enters(a at) (facts []fact) {
	e := a.up[0]
	service := portOf(a.id(a.v), e)
	for _, who := range callersOf(e) {
		facts = append(facts, one(Right{who, "reach", service})...)
		for _, at := range entryPorts(e) {
			facts = append(facts, one(entering(who, a.host(), at, service))...)
		}
	}
	return facts
}

func entering(who, host, at, service string) Right {
	return Right{who, "come in through", "host " + host + " at " + at + " to " + service}
}

// callersOf describes the callers who may use an entry, one for each of its networks.
func callersOf(e map[string]any) (all []string) {
	if len(list(e["from"])) == 0 {
		return []string{caller(e, "")}
	}
	for _, network := range list(e["from"]) {
		all = append(all, caller(e, shown(network)))
	}
	return all
}

// caller describes the callers of an entry in a network, which is empty for all networks.
func caller(e map[string]any, network string) string {
	outside := shown(e["outside"])
	switch {
	case e["caller"] != nil && network != "":
		return fmt.Sprintf("outside caller %s, proven by certificate and in %s,", outside, network)
	case e["caller"] != nil:
		return fmt.Sprintf("outside caller %s, proven by certificate,", outside)
	case outside != "":
		return fmt.Sprintf("outside caller %s, known by the address alone (%s),", outside, cmp.Or(network, "any"))
	case network != "":
		return "anyone in " + network
	}
	return "anyone"
}

// entryPorts describes the port of an entry, once for each TLS server name to which the entry
// applies.
func entryPorts(e map[string]any) (all []string) {
	protocol := cmp.Or(strings.ToUpper(shown(e["protocol"])), "TCP")
	address, port, err := net.SplitHostPort(shown(e["listen"]))
	words := protocol + " port " + port
	if err != nil || address != "" {
		words = protocol + " " + shown(e["listen"])
	}
	if len(list(e["serverNames"])) == 0 {
		return []string{words}
	}
	for _, name := range list(e["serverNames"]) {
		all = append(all, words+" as "+shown(name))
	}
	return all
}

func entryLimit(a at) (facts []fact) {
	e := a.up[1]
	for _, at := range entryPorts(e) {
		var bounds []Right
		for _, who := range callersOf(e) {
			bounds = append(bounds, entering(who, a.host(), at, portOf(a.id(e["id"]), e)))
		}
		facts = append(facts, a.limit("each address at "+at+" of "+a.host(), bounds)...)
	}
	return facts
}

// entryLog returns the rights of those who read the logs of an ingress.
func entryLog(a at) (facts []fact) {
	e := a.up[0]
	for _, at := range entryPorts(e) {
		where := portOf(a.id(e["id"]), e) + " at " + at
		see := func(words string) {
			facts = append(facts, one(Right{"who reads the logs of " + a.host(), "see", words + where})...)
		}
		switch a.v {
		case "sampled", "full":
			see("the addresses of some callers of ")
			if a.v == "full" {
				see("the address of every caller of ")
			}
		default:
			see(shown(a.v) + " of callers of ")
		}
	}
	return facts
}

// covered returns the rights of entries on each side of a change that wider entries on the other
// side grant, too: an entry for anyone also takes in the callers in a network, and one without
// server names also those who give a name.
func covered(was, is documents) (facts [2][]fact, err error) {
	var entries [2][]map[string]any
	var roots [2]map[string]any
	for s, docs := range []documents{was, is} {
		var manifest map[string]any
		if err := read(docs[document.DocManifest], &manifest); err != nil {
			return facts, err
		}
		for _, e := range list(object(manifest["forwarder"])["entries"]) {
			entries[s] = append(entries[s], object(e))
		}
		roots[s] = manifest
	}
	for s := range entries {
		for _, narrow := range entries[1-s] {
			for _, wide := range entries[s] {
				facts[s] = append(facts[s], covers(roots[s], wide, narrow)...)
			}
		}
	}
	return facts, nil
}

// covers returns the rights of the callers of one entry that another entry, which is given by wide,
// also takes in.
func covers(root, wide, narrow map[string]any) (facts []fact) {
	for _, key := range []string{"listen", "protocol", "id", "port"} {
		if shown(wide[key]) != shown(narrow[key]) {
			return nil
		}
	}
	if outside := shown(wide["outside"]); outside != "" && outside != shown(narrow["outside"]) {
		return nil
	}
	if wide["caller"] != nil && shown(wide["caller"]) != shown(narrow["caller"]) {
		return nil
	}
	both := maps.Clone(wide)
	both["outside"] = narrow["outside"]
	if narrow["caller"] != nil {
		both["caller"] = narrow["caller"]
	}
	within := func(key string, contains func(wide, narrow string) bool) bool {
		if list(wide[key]) == nil {
			both[key] = narrow[key]
			return true
		}
		both[key] = slices.DeleteFunc(slices.Clone(list(narrow[key])), func(n any) bool {
			return !slices.ContainsFunc(list(wide[key]), func(w any) bool { return contains(shown(w), shown(n)) })
		})
		return len(list(both[key])) > 0
	}
	if !within("from", contains) || !within("serverNames", func(w, n string) bool { return w == n }) {
		return nil
	}
	w := &walk{root: root, loose: map[string]string{}}
	facts = enters(at{walk: w, up: []map[string]any{both}, v: both["id"]})
	if both["accessLog"] != nil {
		facts = append(facts, entryLog(at{walk: w, up: []map[string]any{both}, v: both["accessLog"]})...)
	}
	for key, limit := range object(both["limits"]) {
		facts = append(facts, entryLimit(at{walk: w, path: []string{key}, up: []map[string]any{nil, both}, v: limit})...)
	}
	return facts
}

// contains reports whether a network contains another network.
func contains(wide, narrow string) bool {
	w, err := netip.ParsePrefix(wide)
	if err != nil {
		return wide == narrow
	}
	n, err := netip.ParsePrefix(narrow)
	return err == nil && w.Overlaps(n) && w.Bits() <= n.Bits()
}

// states returns the right of a node to tell a service the addresses of strangers.
func states(a at) []fact {
	return one(Right{a.id(a.v), "state", "the addresses of strangers to " + a.port(a.up[0])})
}

// entered describes a change of an entry.
func (c Change) entered(element string, rest []string, value string) (noun, words string) {
	noun = "entry"
	if e, ok := cmp.Or(c.After, c.Before).(map[string]any); ok && len(rest) == 0 && element != "" {
		who := "strangers"
		if e["from"] != nil || e["outside"] != nil {
			var from []string
			for _, network := range list(e["from"]) {
				from = append(from, shown(network))
			}
			who = caller(e, some(from, 4))
		}
		return noun, fmt.Sprintf("takes in %s at %s for %s", who, some(entryPorts(e), 4), portOf(shown(e["id"]), e))
	}
	if element == "" {
		return noun, "takes in strangers, otherwise than before: " + value
	}
	return noun, fmt.Sprintf("entry at %s, %s: %s", strings.Replace(element, " ", " for ", 1), strings.Join(rest, "."), unquote.Replace(value))
}
