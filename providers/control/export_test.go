package control

import "slices"

// Paths returns the paths of all endpoints.
func Paths() (all []string) {
	for _, e := range endpoints {
		all = append(all, e.path)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
