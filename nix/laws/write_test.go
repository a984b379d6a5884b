package laws

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// shuffled returns the same topology as JSON with its definitions in another order: fields, and
// lists without a meaningful order.
func (g generator) shuffled(c *cluster) json.RawMessage {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	var v map[string]any
	if err := json.Unmarshal(b, &v); err != nil {
		panic(err)
	}
	var out strings.Builder
	g.write(&out, v, "")
	return json.RawMessage(out.String())
}

func (g generator) write(out *strings.Builder, v any, place string) {
	switch v := v.(type) {
	case map[string]any:
		out.WriteString("{")
		keys := slices.Sorted(maps.Keys(v))
		for n, i := range g.Perm(len(keys)) {
			if n > 0 {
				out.WriteString(",")
			}
			fmt.Fprintf(out, "%q:", keys[i])
			g.write(out, v[keys[i]], place+"."+keys[i])
		}
		out.WriteString("}")
	case []any:
		// The order of roots, keys, providers, waves, callers, addresses and requests is meaningful.
		chosen := slices.ContainsFunc([]string{".trust.", ".providers.", ".rollout."}, func(p string) bool { return strings.HasPrefix(place, p) }) || strings.Contains(place, ".callers.") || strings.HasSuffix(place, ".address") || strings.Contains(place, ".request.")
		order := g.Perm(len(v))
		if chosen {
			slices.Sort(order)
		}
		out.WriteString("[")
		for n, i := range order {
			if n > 0 {
				out.WriteString(",")
			}
			g.write(out, v[i], place+"[]")
		}
		out.WriteString("]")
	default:
		b, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		out.Write(b)
	}
}
