package compile

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
)

//go:embed written.nix
var writtenNix string

// Written is the topology of a cluster exactly as people have written it in the flake. References
// are not followed, and default values are not added.
type Written struct {
	// Topology has the types that encoding/json decodes. It lacks self, serial and rev. Paths and
	// functions are objects with the names "_path" and "_type".
	Topology map[string]any `json:"topology"`
	Places   []Place        `json:"places"`
}

// Place tells where in the flake's files an attribute of the topology, or an element of a list, was
// written.
type Place struct {
	Path []any     `json:"path"` // names of attributes, and indices in lists as float64
	At   *Position `json:"at"`   // nil if it is unknown, or not in the flake
}

// Position is a line and a column in a file at which an attribute begins. The attribute's name
// begins there, or a longer path of names that contains it, such as "services.wiki.port".
type Position struct {
	File         string // relative to the root of the repository of the flake
	Line, Column int    // from 1; columns count bytes
}

// ErrNotWritten is the error of ReadWritten for a cluster that was not declared with mkCluster of
// an input.
var ErrNotWritten = errors.New("the flake does not pass the cluster to florete.lib.mkCluster of an input")

// ReadWritten returns the topology as people have written it in the flake. The result also contains
// the places of a service's attributes, and of all attributes and texts that contain the name of
// the service.
func ReadWritten(ctx context.Context, src Source, service string) (w Written, err error) {
	if err := src.exists(); err != nil {
		return w, err
	}
	var flake struct {
		Resolved map[string]any
		Locks    json.RawMessage
	}
	if err := run(ctx, []string{"flake", "metadata", src.ref()}, src.Args, &flake); err != nil {
		return w, err
	}
	dir, _ := flake.Resolved["dir"].(string)
	delete(flake.Resolved, "dir")
	resolved, err := json.Marshal(flake.Resolved)
	if err != nil {
		return w, err
	}
	expr := fmt.Sprintf("(%s) { resolved = builtins.fromJSON %s; dir = %s; locks = builtins.fromJSON %s; cluster = %s; service = %s; }",
		writtenNix, quote(string(resolved)), quote(dir), quote(string(flake.Locks)), quote(src.Cluster), quote(service))
	var out *Written
	if err := run(ctx, []string{"eval"}, []string{"--impure", "--expr", expr}, &out); err != nil {
		return w, err
	}
	if out == nil {
		return w, ErrNotWritten
	}
	return *out, nil
}
