package plan

import (
	"maps"
	"slices"

	"github.com/florete/florete/nix/operator/compile"
)

// Fact is a change of a value that a host or service declares for the configurations of other hosts.
// The documents do not show which configurations read the value.
type Fact struct {
	Of     string `json:"of"` // such as "host app2" or "service wiki"
	Name   string `json:"name"`
	Before string `json:"before,omitempty"` // JSON; missing if the value is new
	After  string `json:"after,omitempty"`  // JSON; missing if the value was removed
}

func facts(was, is compile.Topology) (all []Fact) {
	compare := func(of string, was, is map[string]any) {
		value := func(v any, there bool) string {
			if !there {
				return ""
			}
			return compactJSON(v)
		}
		for _, name := range slices.Sorted(maps.Keys(union(was, is))) {
			before, had := was[name]
			after, has := is[name]
			if f := (Fact{of, name, value(before, had), value(after, has)}); f.Before != f.After {
				all = append(all, f)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(union(was.Hosts, is.Hosts))) {
		compare("host "+name, was.Hosts[name].Facts, is.Hosts[name].Facts)
	}
	for _, name := range slices.Sorted(maps.Keys(union(was.Services, is.Services))) {
		compare("service "+name, was.Services[name].Facts, is.Services[name].Facts)
	}
	return all
}

func (f Fact) prose() string {
	switch {
	case f.Before == "":
		return f.Of + ", " + f.Name + " is new: " + f.After
	case f.After == "":
		return f.Of + ", " + f.Name + " is gone, it was " + f.Before
	}
	return f.Of + ", " + f.Name + ": " + f.Before + " → " + f.After
}
