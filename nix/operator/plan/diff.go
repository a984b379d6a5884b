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

// Change is a difference between two versions of a host's document.
type Change struct {
	// Document is "manifest" or "policy", or "units" if the prefix of the host's names changes.
	Document string `json:"document"`
	// Path is the path to the changed value, such as ["needs", "oidc-wiki", "renew"]. It consists
	// of names of fields and, for each element of a list, of a value that identifies the element.
	Path   []string `json:"path"`
	Before any      `json:"before,omitempty"` // missing if the value is new
	After  any      `json:"after,omitempty"`  // missing if the value was removed
}

// changes returns the changes of a host. For a host that is added or removed, it returns only the
// parts of the host that other hosts see.
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
			// The host becomes a provider host or is no longer one.
			old, now = map[string]any{"kinds": old["kinds"]}, map[string]any{"kinds": now["kinds"]}
		}
		compare(nil, old, now, func(c Change) {
			c.Document = kind
			all = append(all, c)
		})
	}
	return all, nil
}

// outline returns the needs and the published services of a manifest.
func outline(manifest map[string]any) map[string]any {
	forwarder, ok := manifest["forwarder"].(map[string]any)
	if !ok {
		return map[string]any{"needs": []any{}, "forwarder": map[string]any{"publish": []any{}}}
	}
	return map[string]any{"needs": manifest["needs"], "forwarder": map[string]any{"publish": forwarder["publish"]}}
}

// compare compares two values from json.Unmarshal. It reports the changes in a fixed order.
func compare(path []string, was, is any, emit func(Change)) {
	list := isList(was) || isList(is)
	change := func(key string, before, after any) {
		at := slices.Clone(path)
		// An element of a list that is a plain value needs no key in addition.
		if key != "" && !(list && key == fmt.Sprint(cmp.Or(before, after))) {
			at = append(at, key)
		}
		emit(Change{Path: at, Before: before, After: after})
	}
	old, oldKeys, wasSet := entries(was)
	now, nowKeys, isSet := entries(is)
	inOrder := len(path) > 0 && path[len(path)-1] == "providers" // the order is that of preference
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
	// The elements are the same but their order differs, which may matter.
	if list && same && !slices.Equal(oldKeys, nowKeys) {
		change("", oldKeys, nowKeys)
	}
}

func isList(v any) bool {
	_, ok := v.([]any)
	return ok
}

// entries converts a value to a set, so that two values can be compared. The keys of an object are
// its fields, in order. The keys of a list are values that identify its elements. If an element has
// no such value, the result ok is false.
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

// name returns a value that identifies an element of a list.
func name(e any) string {
	switch e := e.(type) {
	case string:
		return e
	case float64:
		return fmt.Sprint(e)
	case []any: // addresses of one program
		return fmt.Sprint(e)
	case map[string]any:
		if id, ok := e["id"].(string); ok {
			if listen, ok := e["listen"].(string); ok && !strings.HasPrefix(listen, "127.") { // an entry
				id = listen + " " + id
			}
			if port, ok := e["port"].(string); ok { // one of several ports, with its protocol
				id += ":" + port
				if protocol, ok := e["protocol"].(string); ok {
					id += "/" + protocol
				}
			}
			if role, ok := e["role"].(string); ok { // access while a grant is in force
				id += " by " + role
			}
			return id
		}
		if path, ok := e["path"].(string); ok { // of a rule for strangers
			return path
		}
		if label, ok := e["label"].(string); ok { // of a path through relays
			return label
		}
		if account, ok := e["account"].(string); ok { // of a login
			return account
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

// compact formats a value on one line.
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
