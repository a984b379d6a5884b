package plan

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/florete/florete/nix/operator/compile"
)

// Placement lists services, each with the hosts on which it runs.
type Placement []Placed

// Placed is one service and the hosts on which it runs.
type Placed struct {
	Service string   `json:"service"`
	Hosts   []string `json:"hosts"`
}

// PlacementOf returns all services of a topology, sorted by name, and the hosts on which each of
// them runs.
func PlacementOf(t compile.Topology) Placement {
	all := Placement{}
	for _, name := range slices.Sorted(maps.Keys(t.Services)) {
		all = append(all, Placed{name, t.Services[name].Hosts})
	}
	return all
}

// Text prints one line for each service, with its hosts.
func (p Placement) Text(w io.Writer) error {
	for _, s := range p {
		if _, err := fmt.Fprintf(w, "service/%s: %s\n", s.Service, strings.Join(s.Hosts, ", ")); err != nil {
			return err
		}
	}
	return nil
}
