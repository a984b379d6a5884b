package compile

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// lockFile is the part of flake.lock (version 7) with the locked inputs.
type lockFile struct {
	Root  string
	Nodes map[string]lockNode
}

type lockNode struct {
	// Inputs contains names of nodes, or paths from the root for inputs that follow others.
	Inputs map[string]json.RawMessage
	Locked map[string]any
}

// ReadInputs returns the locked references of a flake's inputs. The keys are paths of inputs, such
// as "florete/nixpkgs". A locked reference contains a hash of the input's content. If Source.Args
// overrides an input, its value is the override.
func ReadInputs(ctx context.Context, src Source) (map[string]string, error) {
	if err := src.exists(); err != nil {
		return nil, err
	}
	var metadata struct{ Locks lockFile }
	if err := run(ctx, []string{"flake", "metadata", src.ref()}, src.Args, &metadata); err != nil {
		return nil, err
	}
	return metadata.Locks.inputs(), nil
}

// inputs returns the references of all inputs in the graph of the lock file. It names each node by
// the first path that leads to the node, breadth first. Each edge of the graph is included once,
// even if several paths lead to it.
func (l lockFile) inputs() map[string]string {
	all := map[string]string{}
	visited := map[string]bool{l.Root: true}
	type place struct{ node, path string }
	for queue := []place{{l.Root, ""}}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, name := range slices.Sorted(maps.Keys(l.Nodes[at.node].Inputs)) {
			path := strings.TrimPrefix(at.path+"/"+name, "/")
			node, ok := l.follow(l.Nodes[at.node].Inputs[name], 0)
			if !ok {
				all[path] = "an input that flake.lock does not have"
				continue
			}
			all[path] = reference(l.Nodes[node].Locked)
			if !visited[node] {
				visited[node] = true
				queue = append(queue, place{node, path})
			}
		}
	}
	return all
}

// follow returns the node of the lock file to which an input leads.
func (l lockFile) follow(input json.RawMessage, depth int) (node string, ok bool) {
	if json.Unmarshal(input, &node) == nil {
		_, ok = l.Nodes[node]
		return node, ok
	}
	var path []string
	if json.Unmarshal(input, &path) != nil || depth > len(l.Nodes) {
		return "", false
	}
	node = l.Root
	for _, name := range path {
		if node, ok = l.follow(l.Nodes[node].Inputs[name], depth+1); !ok {
			return "", false
		}
	}
	return node, true
}

// reference formats a locked flake reference for people. It contains everything that determines the
// fetched content, but not the time of locking.
func reference(locked map[string]any) string {
	if locked == nil {
		return "the flake itself"
	}
	rest := maps.Clone(locked)
	take := func(name string) string {
		s, _ := rest[name].(string)
		delete(rest, name)
		return s
	}
	delete(rest, "lastModified")
	delete(rest, "revCount")
	kind := take("type")
	ref := kind + ":" + cmp.Or(take("url"), take("path"), take("id"))
	if owner := take("owner"); owner != "" {
		ref = kind + ":" + owner + "/" + take("repo")
	}
	words := []string{ref}
	for _, name := range []string{"rev", "narHash"} {
		if s := take(name); s != "" {
			words = append(words, s)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		words = append(words, fmt.Sprintf("%s=%v", name, rest[name]))
	}
	return strings.Join(words, " ")
}
