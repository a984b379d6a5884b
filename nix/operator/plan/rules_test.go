package plan

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/kit"
)

// TestEveryAttributeHasARule checks that every attribute in the schemas of documents has a rule, or
// is in an attribute that has one.
func TestEveryAttributeHasARule(t *testing.T) {
	v := kit.Validator{All: map[string]kit.Schema{}}
	for _, name := range []string{"manifest", "policy"} {
		b, err := os.ReadFile(filepath.Join("../../schema", name+".schema.json"))
		if err != nil {
			t.Fatal(err)
		}
		var s kit.Schema
		if err := json.Unmarshal(b, &s); err != nil {
			t.Fatal(err)
		}
		v.All[name] = s
	}
	used := map[string]bool{}
	var walk func(pattern string, at kit.Place)
	walk = func(pattern string, at kit.Place) {
		at = v.Follow(at)
		if r, ok := rules[pattern]; ok {
			used[pattern] = true
			if !r.deeper {
				return
			}
		}
		properties, _ := at.Schema["properties"].(kit.Schema)
		for name := range properties {
			next := pattern + "." + name
			if !known[next] && known[pattern+".*"] {
				next = pattern + ".*"
			}
			walk(next, at.Child("properties").Child(name))
		}
		others, _ := at.Schema["additionalProperties"].(kit.Schema)
		if others != nil {
			walk(pattern+".*", at.Child("additionalProperties"))
		}
		items, _ := at.Schema["items"].(kit.Schema)
		if items != nil {
			walk(pattern+"[]", at.Child("items"))
		}
		if _, ok := rules[pattern]; !ok && len(properties) == 0 && others == nil && items == nil {
			t.Errorf("%s: no rule says what it grants", pattern)
		}
	}
	for _, kind := range []string{document.DocManifest, document.DocPolicy} {
		walk(kind, kit.Place{File: kind, Schema: v.All[kind]})
	}
	for pattern := range rules {
		if !used[pattern] && !strings.HasPrefix(pattern, "policy.kinds.") {
			t.Errorf("%s: no document has it", pattern)
		}
	}
}
