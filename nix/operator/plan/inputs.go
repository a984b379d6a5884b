package plan

import (
	"cmp"
	"maps"
	"slices"
)

// Input is an input of the flake, such as nixpkgs, whose locked revision a change replaces. A plan
// lists such inputs because hosts run code from them as root.
type Input struct {
	Name   string `json:"name"`             // path of the input, such as "florete/nixpkgs"
	Before string `json:"before,omitempty"` // missing if the input is new
	After  string `json:"after,omitempty"`  // missing if the input was removed
}

// inputs returns the inputs that differ, with Florete first. It returns none if the inputs before
// or after the change could not be read.
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
	return "!" // also for a new input, because some code now comes from it
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
