package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/florete/florete/internal/document"
)

// Change is one thing that a document says differently.
type Change struct {
	// Document is "manifest" or "policy"; "units" for how they are called on the host.
	Document string `json:"document"`
	// Path leads to it: names of fields, and for elements of lists what tells
	// them apart, such as ["needs", "oidc-wiki", "renew"].
	Path   []string `json:"path"`
	Before any      `json:"before,omitempty"` // nothing when it is new
	After  any      `json:"after,omitempty"`  // nothing when it is gone
}

// changes of a host. Of one that comes or goes, what others see of it.
func changes(change string, was, is documents) ([]Change, error) {
	all := []Change{}
	for _, kind := range []string{document.DocManifest, document.DocPolicy} {
		var old, now map[string]any
		if err := read(was[kind], &old); err != nil {
			return nil, err
		}
		if err := read(is[kind], &now); err != nil {
			return nil, err
		}
		switch {
		case change != "changed" && kind == document.DocPolicy:
			continue
		case change != "changed":
			old, now = outline(old), outline(now)
		case kind == document.DocPolicy && (old == nil || now == nil):
			// A host starts or stops to provide.
			old, now = map[string]any{"kinds": old["kinds"]}, map[string]any{"kinds": now["kinds"]}
		}
		compare(nil, old, now, func(c Change) {
			c.Document = kind
			all = append(all, c)
		})
	}
	return all, nil
}

// outline is what a host fetches and what it publishes.
func outline(manifest map[string]any) map[string]any {
	forwarder, ok := manifest["forwarder"].(map[string]any)
	if !ok {
		return map[string]any{"needs": []any{}, "forwarder": map[string]any{"publish": []any{}}}
	}
	return map[string]any{"needs": manifest["needs"], "forwarder": map[string]any{"publish": forwarder["publish"]}}
}

// compare walks two values that json.Unmarshal made, in a fixed order.
func compare(path []string, was, is any, emit func(Change)) {
	list := isList(was) || isList(is)
	change := func(key string, before, after any) {
		at := slices.Clone(path)
		// An element of a list that is its own name needs no other.
		if key != "" && !(list && key == fmt.Sprint(cmp.Or(before, after))) {
			at = append(at, key)
		}
		emit(Change{Path: at, Before: before, After: after})
	}
	old, oldKeys, wasSet := entries(was)
	now, nowKeys, isSet := entries(is)
	inOrder := len(path) > 0 && path[len(path)-1] == "providers" // of preference
	if !wasSet || !isSet || list && inOrder {
		if !reflect.DeepEqual(was, is) {
			change("", was, is)
		}
		return
	}
	same := true
	for _, key := range oldKeys {
		v, kept := now[key]
		if !kept {
			change(key, old[key], nil)
		} else {
			compare(append(slices.Clone(path), key), old[key], v, emit)
		}
		same = same && kept
	}
	for _, key := range nowKeys {
		if _, had := old[key]; !had {
			change(key, nil, now[key])
			same = false
		}
	}
	// The same elements in another order: what comes first may matter.
	if list && same && !slices.Equal(oldKeys, nowKeys) {
		change("", oldKeys, nowKeys)
	}
}

func isList(v any) bool {
	_, ok := v.([]any)
	return ok
}

// entries sees a value as a set: an object by its fields, in order; a list by what
// tells its elements apart, when something does.
func entries(v any) (set map[string]any, keys []string, ok bool) {
	switch v := v.(type) {
	case nil:
		return nil, nil, true
	case map[string]any:
		for key := range v {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		return v, keys, true
	case []any:
		set = map[string]any{}
		for _, e := range v {
			key := name(e)
			if _, twice := set[key]; key == "" || twice {
				return nil, nil, false
			}
			set[key] = e
			keys = append(keys, key)
		}
		return set, keys, true
	default:
		return nil, nil, false
	}
}

// name is what tells an element of a list from the others.
func name(e any) string {
	switch e := e.(type) {
	case string:
		return e
	case float64:
		return fmt.Sprint(e)
	case []any: // the addresses of one program
		return fmt.Sprint(e)
	case map[string]any:
		if id, ok := e["id"].(string); ok {
			if port, ok := e["port"].(string); ok { // one of several, over one of its protocols
				id += ":" + port
				if protocol, ok := e["protocol"].(string); ok {
					id += "/" + protocol
				}
			}
			return id
		}
		if unit, ok := e["unit"].(string); ok {
			return unit
		}
		if domain, ok := e["trustDomain"].(string); ok {
			return domain
		}
		caller, _ := e["caller"].(string)
		need, _ := e["need"].(string)
		return strings.TrimSpace(caller + " " + need)
	}
	return ""
}

// compact is a value in one line.
func compact(v any) string {
	if s, ok := v.(string); ok {
		if strings.Contains(s, "\n") {
			return strings.Join(certificates(s), ", ")
		}
		return s
	}
	return compactJSON(v)
}

func compactJSON(v any) string {
	var b strings.Builder
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	_ = out.Encode(v)
	return strings.TrimSpace(b.String())
}
