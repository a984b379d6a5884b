package compile

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/kit"
)

type schema = kit.Schema

type validator struct{ kit.Validator }

func schemas(t *testing.T) map[string]schema {
	t.Helper()
	all := map[string]schema{}
	for _, name := range []string{"manifest", "policy", "envelope"} {
		b, err := os.ReadFile(filepath.Join("../../schema", name+".schema.json"))
		if err != nil {
			t.Fatal(err)
		}
		var s schema
		if err := json.Unmarshal(b, &s); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[name] = s
	}
	return all
}

// TestSchemaIsTheTypes checks that schemas and Go types have the same fields and the same required
// ones, at every level.
func TestSchemaIsTheTypes(t *testing.T) {
	v := validator{kit.Validator{All: schemas(t)}}
	for name, typ := range map[string]reflect.Type{
		"manifest": reflect.TypeFor[document.Manifest](),
		"policy":   reflect.TypeFor[document.Policy](),
		"envelope": reflect.TypeFor[document.Envelope](),
	} {
		v.same(t, name, kit.Place{File: name, Schema: v.All[name]}, typ)
	}
}

func (v validator) same(t *testing.T, path string, at kit.Place, typ reflect.Type) {
	at = v.Follow(at)
	switch typ.Kind() {
	case reflect.Pointer:
		v.same(t, path, at, typ.Elem())
	case reflect.Slice:
		if typ != reflect.TypeFor[json.RawMessage]() {
			v.same(t, path+"[]", at.Child("items"), typ.Elem())
		}
	case reflect.Map:
		v.same(t, path+".*", at.Child("additionalProperties"), typ.Elem())
	case reflect.Struct:
		if _, text := reflect.New(typ).Interface().(interface{ UnmarshalText([]byte) error }); text {
			return
		}
		var fields, required []string
		for f := range typ.Fields() {
			name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
			fields = append(fields, name)
			if option == "" {
				required = append(required, name)
			}
			if _, ok := at.Schema["properties"].(schema)[name]; ok {
				v.same(t, path+"."+name, at.Child("properties").Child(name), f.Type)
			}
		}
		compare(t, path+": properties", slices.Sorted(maps.Keys(at.Schema["properties"].(schema))), fields)
		compare(t, path+": required", kit.Strings(at.Schema["required"]), required)
	}
}

func compare(t *testing.T, what string, got, want []string) {
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s: schema has %v, Go has %v", what, got, want)
	}
}

// TestGoldenDocumentsMatchSchemas also checks that documents no longer match after any one change
// of the kinds that the schemas must detect.
func TestGoldenDocumentsMatchSchemas(t *testing.T) {
	v := validator{kit.Validator{All: schemas(t)}}
	seen := map[string]int{}
	for name, files := range evaluate() {
		for host, kinds := range files["topology.nix"].Documents {
			for kind, d := range kinds {
				for kind, text := range map[string]string{kind: d.Body, "envelope": d.Envelope} {
					var doc schema
					if err := json.Unmarshal([]byte(text), &doc); err != nil {
						t.Fatal(err)
					}
					at := kit.Place{File: kind, Schema: v.All[kind]}
					if err := v.Check(at, doc); err != nil {
						t.Errorf("%s: %s of %s: %v", name, kind, host, err)
					}
					seen[kind]++
					for key := range doc {
						if slices.Contains(kit.Strings(at.Schema["required"]), key) && v.Check(at, without(doc, key)) == nil {
							t.Errorf("%s: the schema accepts a document without %s", kind, key)
						}
					}
					doc["more"] = true
					if v.Check(at, doc) == nil {
						t.Errorf("%s: the schema accepts an unknown attribute", kind)
					}
				}
			}
		}
	}
	if seen["manifest"] == 0 || seen["policy"] == 0 || seen["envelope"] == 0 {
		t.Errorf("golden cases gave %v documents", seen)
	}
}

func without(doc schema, key string) schema {
	c := maps.Clone(doc)
	delete(c, key)
	return c
}
