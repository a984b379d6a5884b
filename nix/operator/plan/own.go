package plan

import (
	"maps"
	"slices"
)

// own are the fields of a request of a kind of the cluster's own.
var own = []string{"request", "service"}

// ofOwn is what such a request grants: that the host has what is made for the service, and that
// this is as each of its fields says.
func ofOwn(a at, caller, kind string, request map[string]any) []fact {
	service := a.id(request["service"])
	facts := one(Right{caller, "fetch", kind + " of " + service}, Right{caller, "act as", service})
	fields := object(request["request"])
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		facts = append(facts, fact{Right: Right{service, "have", kind + " with " + name + " " + shown(fields[name])}})
	}
	return facts
}

// answers is what answers for a kind of the cluster's own on a provider host.
func answers(words string) func(a at) []fact {
	return func(a at) []fact {
		return one(Right{words + " " + shown(a.v), "answer as", "the " + a.path[1] + " provider of " + a.host()})
	}
}
