package plan

import (
	"cmp"
	"maps"
	"slices"
)

// Input is an input of the flake that is locked to something else than before. Hosts run what
// inputs have: of Florete the modules and programs, as root.
type Input struct {
	Name   string `json:"name"`             // its path, "florete/nixpkgs"
	Before string `json:"before,omitempty"` // nothing when it is new
	After  string `json:"after,omitempty"`  // nothing when it is gone
}

// inputs returns those that differ, Florete first. Where one side was not read, there are none.
func inputs(before, after map[string]string) (all []Input) {
	if before == nil || after == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(union(before, after))) {
		if before[name] != after[name] {
			all = append(all, Input{name, before[name], after[name]})
		}
	}
	rank := func(i Input) int {
		if i.Name == "florete" {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b Input) int { return cmp.Compare(rank(a), rank(b)) })
	return all
}

func (i Input) mark() string {
	if i.After == "" {
		return "-"
	}
	return "!" // also a new one: some code comes from there now
}

func (i Input) prose() string {
	switch {
	case i.Before == "":
		return i.Name + " is new: " + i.After
	case i.After == "":
		return i.Name + " is gone, it was " + i.Before
	}
	words := i.Name + ": " + i.Before + " → " + i.After
	if i.Name == "florete" {
		words += ", whose programs and modules hosts run as root"
	}
	return words
}
