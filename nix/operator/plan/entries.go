package plan

import (
	"cmp"
	"fmt"
	"net"
	"strings"
)

// An entry is a listener at which callers without an identity reach a service. They may come from
// anywhere, or from networks that prove nothing but an address.

// enters returns the right of callers without an identity to reach a service through an entry.
func enters(a at) []fact {
	e := a.up[0]
	return one(entering(a.host(), e, portOf(a.id(a.v), e)), Right{callersOf(e), "reach", portOf(a.id(a.v), e)})
}

func entering(host string, e map[string]any, service string) Right {
	return Right{callersOf(e), "come in through", "host " + host + " at " + entryPort(e) + " to " + service}
}

// callersOf describes the callers who may use an entry.
func callersOf(e map[string]any) string {
	var from []string
	for _, network := range list(e["from"]) {
		from = append(from, shown(network))
	}
	switch outside := shown(e["outside"]); {
	case outside != "":
		return fmt.Sprintf("outside caller %s, known by the address alone (%s),", outside, some(from, 4))
	case len(from) > 0:
		return "anyone in " + some(from, 4)
	}
	return "anyone"
}

// entryPort describes the port of an entry, and the TLS server names to which the entry applies.
func entryPort(e map[string]any) string {
	protocol := cmp.Or(strings.ToUpper(shown(e["protocol"])), "TCP")
	address, port, err := net.SplitHostPort(shown(e["listen"]))
	words := protocol + " port " + port
	if err != nil || address != "" {
		words = protocol + " " + shown(e["listen"])
	}
	var names []string
	for _, name := range list(e["serverNames"]) {
		names = append(names, shown(name))
	}
	if len(names) > 0 {
		words += " as " + some(names, 4)
	}
	return words
}

func entryLimit(a at) []fact {
	e := a.up[1]
	service := portOf(a.id(e["id"]), e)
	return a.limit("each address at "+entryPort(e)+" of "+a.host(), []Right{entering(a.host(), e, service)})
}

// entryLog returns the rights of those who read the logs of an ingress.
func entryLog(a at) []fact {
	e := a.up[0]
	words := "the address of every caller of "
	if a.v == "sampled" {
		words = "the addresses of some callers of "
	}
	return one(Right{"who reads the logs of " + a.host(), "see", words + portOf(a.id(e["id"]), e) + " at " + entryPort(e)})
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
			who = callersOf(e)
		}
		return noun, fmt.Sprintf("takes in %s at %s for %s", who, entryPort(e), portOf(shown(e["id"]), e))
	}
	if element == "" {
		return noun, "takes in strangers, otherwise than before: " + value
	}
	return noun, fmt.Sprintf("entry at %s, %s: %s", strings.Replace(element, " ", " for ", 1), strings.Join(rest, "."), unquote.Replace(value))
}
