package plan

import (
	"maps"
	"slices"
)

// own lists the fields of a request of one of the cluster's own kinds.
var own = []string{"request", "service"}

// ofOwn returns the rights that such a request grants: the host has what is made for the service,
// with the properties in its fields.
func ofOwn(a at, caller, kind string, request map[string]any) []fact {
	service := a.id(request["service"])
	facts := one(Right{caller, "fetch", kind + " of " + service}, Right{caller, "act as", service})
	fields := object(request["request"])
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		facts = append(facts, fact{Right: Right{service, "have", kind + " with " + name + " " + shown(fields[name])}})
	}
	return facts
}

// answers returns the right of the program that answers for one of the cluster's own kinds on a
// provider host.
func answers(words string) func(a at) []fact {
	return func(a at) []fact {
		return one(Right{words + " " + shown(a.v), "answer as", "the " + a.path[1] + " provider of " + a.host()})
	}
}
