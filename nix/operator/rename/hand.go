package rename

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// byHand returns what a person writes to make the changes, in Nix. next is the topology with them.
func byHand(next map[string]any, old, new string, changes []change) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Rename services.%s to services.%s, and write in the topology:\n", old, new)
	written := map[string]bool{}
	for _, c := range changes {
		of := renamed(c.path, changes)
		if c.kind == renames {
			if len(c.path) == 2 {
				continue // the service itself
			}
			of = of[:len(of)-1] // the set that has the attribute
		}
		var place []string
		v := any(next)
		for _, e := range of {
			name, ok := e.(string)
			if !ok {
				break
			}
			place = append(place, attribute(name))
			v = v.(map[string]any)[name]
		}
		line := fmt.Sprintf("%s = %s;\n", strings.Join(place, "."), nix(v))
		if !written[line] {
			b.WriteString(line)
		}
		written[line] = true
	}
	return b.String()
}

// renamed returns the path of an attribute after the changes.
func renamed(of []any, changes []change) []any {
	next := slices.Clone(of)
	for _, c := range changes {
		if c.kind == renames && len(c.path) <= len(of) && slices.Equal(c.path, of[:len(c.path)]) {
			next[len(c.path)-1] = c.to
		}
	}
	return next
}

// nix writes a value of a topology.
func nix(v any) string {
	switch v := v.(type) {
	case string:
		return quote(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		all := []string{"["}
		for _, e := range v {
			all = append(all, nix(e))
		}
		return strings.Join(append(all, "]"), " ")
	case map[string]any:
		if path, ok := v["_path"].(string); ok {
			return "." + path
		}
		all := []string{"{"}
		for _, name := range sorted(v) {
			all = append(all, attribute(name)+" = "+nix(v[name])+";")
		}
		return strings.Join(append(all, "}"), " ")
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // true, false or null
	}
	return string(text)
}
