package compile

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/florete/florete/tests/kit"
)

// inputSchema returns the schema of a topology that nix/language/inputschema.nix derives from the
// language.
func inputSchema(t *testing.T) (kit.Validator, kit.Place) {
	t.Helper()
	var s schema
	nixEval(t, `import ../../language/inputschema.nix`, &s)
	return kit.Validator{All: map[string]schema{"input": s}}, kit.Place{File: "input", Schema: s}
}

// TestInputSchemaIsCurrent, and has for each attribute what an editor shows.
func TestInputSchemaIsCurrent(t *testing.T) {
	_, at := inputSchema(t)
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)
	out.SetIndent("", " ")
	if err := out.Encode(at.Schema); err != nil {
		t.Fatal(err)
	}
	const path = "../../schema/input.schema.json"
	if *update {
		if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || text.String() != string(got) {
		t.Errorf("%s is not what inputschema.nix writes (%v): go test ./nix/operator/compile -run InputSchema -update", path, err)
	}
	if n := described(t, "", at.Schema); n < 280 {
		t.Errorf("%d attributes", n)
	}
}

// described counts the attributes of a schema. Each has a description; and an example, but
// where choices or a default are one, or its own attributes have them.
func described(t *testing.T, place string, s schema) (n int) {
	properties, _ := s["properties"].(schema)
	for name, p := range properties {
		p := p.(schema)
		if p["description"] == nil || p["description"] == "" {
			t.Errorf("%s%s: no description", place, name)
		}
		if p["examples"] == nil && p["default"] == nil && needsExample(p) {
			t.Errorf("%s%s: no example: its format, or nix/language/examples.nix by its name, must have one", place, name)
		}
		n += 1 + described(t, place+name+".", p)
	}
	if all, ok := s["anyOf"].([]any); ok {
		for _, e := range all {
			n += described(t, place, e.(schema))
		}
	}
	for _, key := range []string{"additionalProperties", "items"} {
		if of, ok := s[key].(schema); ok {
			n += described(t, place+"<name>.", of)
		}
	}
	return n
}

func needsExample(s schema) bool {
	if all, ok := s["anyOf"].([]any); ok {
		return slices.ContainsFunc(all, func(e any) bool { return needsExample(e.(schema)) })
	}
	for _, key := range []string{"additionalProperties", "items"} {
		if of, ok := s[key].(schema); ok && s["properties"] == nil {
			return needsExample(of)
		}
	}
	// What must be written has a hint, which may be no JSON: a path, a set.
	description, _ := s["description"].(string)
	return s["properties"] == nil && s["enum"] == nil && s["type"] != "boolean" && s["type"] != "null" && !strings.HasPrefix(description, "First SPIFFE bundle")
}

// TestInputSchemaAccepts what the compiler takes the form of, of all golden cases, and finds
// each attribute too many or too few that the compiler does.
func TestInputSchemaAccepts(t *testing.T) {
	v, at := inputSchema(t)
	var cases map[string]struct {
		Input  schema
		Faults []Fault
	}
	nixEval(t, `let
		inherit (builtins) all attrNames attrValues filter isAttrs isFunction isList isPath listToAttrs mapAttrs pathExists readDir removeAttrs tryEval;
		key = name: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA" + builtins.substring 8 42 ((import ../../lib/names.nix).sri name);
		inherit (import `+golden+`/merge.nix) merge;
		base = import `+golden+`/base.nix { inherit key; };
		dirs = filter (n: pathExists (`+golden+` + "/${n}/topology.nix")) (attrNames (readDir `+golden+`));
		# JSON has no paths, and no flake.
		asJSON = c: let d = removeAttrs c [ "self" ]; in if !isAttrs (d.secrets or null) then d else d // { secrets = mapAttrs (_: s: if isAttrs s then removeAttrs s [ "public" ] else s) d.secrets; };
		one = n: let
			input = import (`+golden+` + "/${n}/topology.nix") { inherit base key merge; };
			json = asJSON input;
			plain = v: if isAttrs v then all plain (attrValues v) else if isList v then all plain v else !isFunction v && (!isPath v || pathExists v);
			whole = isAttrs input && (tryEval (plain json)) == { success = true; value = true; };
		in { name = n; value = if whole then { input = json; inherit ((import ../../default.nix).mkCluster json) faults; } else null; };
	in listToAttrs (filter (c: c.value != null) (map one (filter (n: n != "refused" && n != "not-a-set") dirs)))`, &cases)
	if len(cases) < 100 {
		t.Errorf("read %d cases", len(cases))
	}
	accepted, refused := 0, 0
	for name, c := range cases {
		err := v.Check(at, c.Input)
		// What a request has stands in the topology.
		form, attributes := false, false
		for _, f := range c.Faults {
			form = form || slices.Contains([]string{"FL001", "FL002", "FL003", "FL004"}, f.ID)
			attributes = attributes || f.ID == "FL001" && !strings.Contains(f.Place, ".request.")
		}
		if err != nil && !form {
			t.Errorf("%s: the schema refuses %v, the compiler finds %v", name, err, c.Faults)
		}
		if err == nil && attributes {
			t.Errorf("%s: the schema accepts it, the compiler finds %v", name, c.Faults)
		}
		if err == nil {
			accepted++
		} else {
			refused++
		}
	}
	if accepted < 50 || refused < 5 {
		t.Errorf("%d cases accepted, %d refused", accepted, refused)
	}
}

// TestInputSchemaIsTheLanguage checks for each attribute that the schema accepts every sample value
// that the typed language accepts. Other samples must be rejected, unless they contain strings,
// because only the language knows the formats of strings.
func TestInputSchemaIsTheLanguage(t *testing.T) {
	v, at := inputSchema(t)
	var places map[string][]struct {
		Value any
		OK    bool
	}
	nixEval(t, `let
		inherit (builtins) all attrNames attrValues concatMap elem filter isAttrs isList listToAttrs match;
		inherit (import ../../language) cluster;
		right = about: v:
			if about ? short && about.short.ok v then true
			else if about.kind == "scalar" then about.ok v
			else if about.kind == "enum" then elem v about.choices
			else if about.kind == "list" then isList v && all (right about.of) v
			else if about.kind == "attrs" then isAttrs v && all (right about.of) (attrValues v)
				&& all (n: match (about.names.pattern or ".*") n != null) (attrNames v)
			else isAttrs v && v == { } && filter (n: about.fields.${n} ? hint) (attrNames about.fields) == [ ];
		nullable = f: f ? default && (f.default == null || f.default == "");
		samples = [ null true false (-1) 0 1 5 50 1000 8080 70000 4294967295 "x" "X y" "all" "quic" [ ] [ "x" ] [ 1 ] [ true ] [ [ ] ] [ { } ] { } { a = "x"; } { a = 1; } { a = [ "x" ]; } { a = { }; } ];
		of = name: f: map (value: { inherit value; ok = right f.about value || value == null && nullable f; })
			(samples ++ (let e = import ../../language/examples.nix name f.about; in if e ? example then [ e.example ] else [ ]));
		walk = place: about:
			if about.kind == "record" then concatMap (n: let f = about.fields.${n}; p = "${place}/properties/${n}"; in
				[ { name = p; value = of n f; } ] ++ walk p f.about) (filter (n: about.fields.${n}.about.json or true != null) (attrNames about.fields))
				++ (if about ? others then walk "${place}/additionalProperties" about.others.about else [ ])
			else if about.kind == "attrs" then walk "${place}/additionalProperties" about.of
			else if about.kind == "list" then walk "${place}/items" about.of
			else [ ];
	in listToAttrs (walk "" cluster.about)`, &places)
	if len(places) < 280 {
		t.Errorf("%d attributes", len(places))
	}
	for _, path := range slices.Sorted(maps.Keys(places)) {
		p := at
		for key := range strings.SplitSeq(path[1:], "/") {
			p = p.Child(key)
		}
		if p.Schema == nil {
			t.Errorf("%s: not in the schema", path)
			continue
		}
		for _, sample := range places[path] {
			err := v.Check(p, sample.Value)
			if sample.OK && err != nil {
				t.Errorf("%s: the language takes %v, the schema: %v", path, sample.Value, err)
			}
			if !sample.OK && err == nil && !hasText(sample.Value) {
				t.Errorf("%s: the schema takes %v, the language does not", path, sample.Value)
			}
		}
	}
}

// hasText reports whether a value contains strings: only the language knows their formats.
func hasText(v any) bool {
	switch v := v.(type) {
	case string:
		return true
	case []any:
		return slices.ContainsFunc(v, hasText)
	case schema:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), hasText)
	}
	return false
}
