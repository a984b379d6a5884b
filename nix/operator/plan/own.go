package plan

import (
	"maps"
	"slices"
)

// own lists the fields that every request has for a kind that the cluster defines itself.
var own = []string{"request", "service"}

// ofOwn returns the rights that a request for a kind of the cluster's own grants. The host receives
// the result that is made for the service, with the properties in the fields of the request.
func ofOwn(a at, caller, kind string, request map[string]any) []fact {
	service := a.id(request["service"])
	facts := one(Right{caller, "fetch", kind + " of " + service}, Right{caller, "act as", service})
	fields := object(request["request"])
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		facts = append(facts, fact{Right: Right{service, "have", kind + " with " + name + " " + shown(fields[name])}})
	}
	return facts
}

// answers returns the right of a program on a provider host to answer needs of a kind that the
// cluster defines itself.
func answers(words string) func(a at) []fact {
	return func(a at) []fact {
		return one(Right{words + " " + shown(a.v), "answer as", "the " + a.path[1] + " provider of " + a.host()})
	}
}
