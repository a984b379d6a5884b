package laws

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/florete/florete/nix/operator/plan"
	"github.com/florete/florete/tests/kit"
)

// golden evaluates the topologies of the compiler's golden cases that JSON can express.
const golden = `let
	inherit (builtins) all attrNames attrValues filter isAttrs isFunction isList isPath isString listToAttrs mapAttrs pathExists readDir removeAttrs substring tryEval;
	dir = ../../tests/golden/compiler;
	key = name: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA" + substring 8 42 ((import ../lib/names.nix).sri name);
	inherit (import (dir + "/merge.nix")) merge;
	base = import (dir + "/base.nix") { inherit key; };
	asJSON = c: let d = removeAttrs c [ "self" ]; in if !isAttrs (d.secrets or null) then d else d // { secrets = mapAttrs (_: s: if isAttrs s then removeAttrs s [ "public" ] else s) d.secrets; };
	plain = v: if isAttrs v then all plain (attrValues v) else if isList v then all plain v else !isFunction v && !isPath v;
	sound = c: (tryEval (isAttrs c && plain c && filter (f: f.severity == "error") ((import ../default.nix).mkCluster c).faults == [ ])) == { success = true; value = true; };
	one = n: asJSON (import (dir + "/${n}/topology.nix") { inherit base key merge; });
	names = filter (n: pathExists (dir + "/${n}/topology.nix") && (tryEval (isAttrs (import (dir + "/${n}/topology.nix") { inherit base key merge; }))) == { success = true; value = true; }) (attrNames (readDir dir));
in listToAttrs (filter (c: sound c.value) (map (n: { name = n; value = one n; }) names))`

// unvaried lists attributes whose values are not varied, with the reason.
var unvaried = map[string]string{
	".acknowledge":                                 "which warnings are shown",
	".acknowledge[].id":                            "which warnings are shown",
	".acknowledge[].place":                         "which warnings are shown",
	".acknowledge[].reason":                        "which warnings are shown",
	".expect":                                      "tests, on which no document depends",
	".expect[].who":                                "tests, on which no document depends",
	".expect[].reaches":                            "tests, on which no document depends",
	".expect[].not":                                "tests, on which no document depends",
	".federated.*.identities.*.roles":              "edits has a foreign role",
	".federated.*.endpointRoots":                   "with another profile alone, which testdata of plan has",
	".providers.database.hosts":                    "one host alone, where its servers are",
	".providers.git.hosts":                         "one host alone, where its forges are",
	".providers.jwt.hosts":                         "one host alone, where its issuer is published",
	".providers.token.hosts":                       "one host alone, where its issuer is published",
	".hosts.*.keeps":                               "where services run, which documents have",
	".roles.*.requires":                            "which hosts may have a role, which documents have",
	".secrets.*.readers":                           "edits has another reader",
	".services.*.placement.apart":                  "where services run, which documents have",
	".services.*.placement.apartByGroup":           "where services run, which documents have",
	".trust.threshold":                             "how many must sign, which tests/attacks lowers and raises",
	".services.*.sso.mode":                         "edits has a sign-in that comes and one that goes",
	".clusters.*.services.*.ingress.paths.*.port":  "the service has one port",
	".federated.*.services.*.ingress.paths.*.port": "the service has one port",
	".providers.store.kind":                        "a store as a whole comes and goes in testdata of plan",
}

// values lists values for attributes whose format and examples have none that fits the golden cases.
var values = map[string][]any{
	".trust.roots":                  {[]any{"-----BEGIN CERTIFICATE-----\nYW5vdGhlcg==\n-----END CERTIFICATE-----\n"}},
	".clusters.*.clients.*.nodes.*": {"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB9E5k5185SOn3P436lHIcTOjLtPJlxHkMcCstQc+/J1"},
	".services.*.record.recipients": {[]any{"age1t7rxyev2z3rw82stdlrrepyc39nvn86l5078zqkf5uasdy86jp6svpy7pa", "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"}},
	".roles.*.request.approve":      {[]any{"leads", "ops"}},
	".roles.*.request.by":           {[]any{"night", "ops"}},
	".teams.*.users":                {[]any{"ann", "leo"}},
	".federated.*.endpointRoots":    {[]any{"-----BEGIN CERTIFICATE-----\nYW5vdGhlcg==\n-----END CERTIFICATE-----\n"}},
}

// occurrences calls with for each attribute of the language in a value.
func occurrences(v kit.Validator, at kit.Place, pattern string, value any, set func(any), with func(pattern string, value any, set func(any), s kit.Schema)) {
	at = v.Follow(at)
	if any, ok := at.Schema["anyOf"].([]any); ok {
		for _, s := range any {
			if v.Check(kit.Place{File: at.File, Schema: s.(kit.Schema)}, value) == nil {
				occurrences(v, kit.Place{File: at.File, Schema: s.(kit.Schema)}, pattern, value, set, with)
				return
			}
		}
	}
	switch x := value.(type) {
	case map[string]any:
		properties, _ := at.Schema["properties"].(kit.Schema)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			if _, written := x[name]; !written {
				with(pattern+"."+name, nil, func(v any) {
					if x[name] = v; v == nil {
						delete(x, name)
					}
				}, v.Follow(at.Child("properties").Child(name)).Schema)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(x)) {
			old := x[name]
			write := func(v any) {
				if v == nil {
					v = old
				}
				x[name] = v
			}
			next, where := at.Child("properties").Child(name), pattern+"."+name
			if next.Schema == nil {
				next, where = at.Child("additionalProperties"), pattern+".*"
			}
			occurrences(v, next, where, old, write, with)
		}
	case []any:
		with(pattern, value, set, at.Schema)
		for i, old := range x {
			if _, record := old.(map[string]any); record {
				occurrences(v, at.Child("items"), pattern+"[]", old, func(v any) {
					if v == nil {
						v = old
					}
					x[i] = v
				}, with)
			}
		}
	default:
		with(pattern, value, set, at.Schema)
	}
}

// others returns values that an attribute may have instead of, or besides, its value, and without
// one. names are the names in the topology.
func others(value any, s kit.Schema, names []string) (all []any) {
	switch x := value.(type) {
	case nil:
		return suggested(s, names)
	case bool:
		return []any{!x}
	case float64:
		return []any{x + 1, x - 1, 2 * x, 0.0}
	case []any:
		if len(x) > 0 {
			all = append(all, x[1:], slices.Clone(x)[:len(x)-1])
		}
		for _, e := range x {
			if text, ok := e.(string); ok && !strings.HasPrefix(text, "-----BEGIN") {
				all = append(all, append(slices.Clone(x), text+"x"))
			}
		}
		for _, name := range names {
			if !slices.Contains(x, any(name)) {
				all = append(all, append(slices.Clone(x), name), []any{name})
			}
		}
	case string:
		choices, _ := s["enum"].([]any)
		for _, c := range choices {
			if c != x {
				all = append(all, c)
			}
		}
		if choices == nil {
			all = append(all, x+"x", x+"/x", strings.Replace(x, "a", "e", 1), strings.Replace(x, "1", "2", 1), strings.Replace(x, "A", "B", 3))
		}
	}
	return all
}

// suggested returns the examples of the language, and similar values.
func suggested(s kit.Schema, names []string) (all []any) {
	all = append(all, list(s["examples"])...)
	all = append(all, list(s["enum"])...)
	for _, of := range list(s["anyOf"]) {
		all = append(all, suggested(of.(kit.Schema), nil)...)
	}
	switch s["type"] {
	case "boolean":
		all = append(all, true, false)
	case "array":
		for _, name := range names {
			all = append(all, []any{name})
		}
	}
	switch d := s["default"].(type) {
	case float64:
		all = append(all, d+1, d-1, 2*d)
	case string:
		all = append(all, d+"x")
	}
	return all
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// TestNothingMoreGoesUnseen changes each attribute of the language. If documents then grant more
// than before, the plan must report that access widens. A new attribute needs a golden case, or a
// reason.
func TestNothingMoreGoesUnseen(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	b, err := os.ReadFile("../schema/input.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var language kit.Schema
	if err := json.Unmarshal(b, &language); err != nil {
		t.Fatal(err)
	}
	v := kit.Validator{All: map[string]kit.Schema{"input": language}}
	cmd := exec.Command("nix-instantiate", "--eval", "--strict", "--json", "--expr", golden)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var topologies map[string]map[string]any
	if err := json.Unmarshal(out, &topologies); err != nil {
		t.Fatal(err)
	}
	if len(topologies) < 50 {
		t.Fatalf("read %d topologies", len(topologies))
	}
	type try struct {
		pattern, topology string
		before, after     int
		value             any
	}
	var all []json.RawMessage
	var tries []try
	index := map[string]int{} // of elements of all
	add := func(topology json.RawMessage) int {
		i, known := index[string(topology)]
		if !known {
			i = len(all)
			index[string(topology)] = i
			all = append(all, topology)
		}
		return i
	}
	found := map[string]int{}
	text := func(v any) json.RawMessage {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, name := range slices.Sorted(maps.Keys(topologies)) {
		top, before := topologies[name], -1
		var names []string
		for _, of := range []string{"hosts", "roles"} {
			set, _ := top[of].(map[string]any)
			names = append(names, slices.Sorted(maps.Keys(set))...)
		}
		occurrences(v, kit.Place{File: "input", Schema: language}, "", top, nil, func(pattern string, value any, set func(any), s kit.Schema) {
			as, most := pattern, 2
			if value == nil {
				as, most = pattern+" unwritten", 1
			}
			if found[as]++; found[as] > most {
				return
			}
			if before < 0 {
				before = add(text(top))
			}
			for _, other := range append(others(value, s, names), values[pattern]...) {
				set(other)
				tries = append(tries, try{pattern, name, before, add(text(top)), other})
				set(nil)
			}
		})
	}
	got := tryAll(t, "nix-instantiate", all)
	varied := map[string]bool{}
	opened := 0
	for _, try := range tries {
		was, is := got[try.before], got[try.after]
		if is.Report != "" || was.Report != "" {
			continue
		}
		varied[try.pattern] = true
		p, err := plan.Compare(was.snapshot(), is.snapshot())
		if err != nil {
			t.Fatal(err)
		}
		if p.Widens {
			opened++
			continue
		}
		if more := more(was, is); len(more) > 0 {
			t.Errorf("%s, %s = %v: nothing opens, and the documents say more: %v", try.topology, try.pattern, fmt.Sprint(try.value), more[:min(3, len(more))])
		}
	}
	var never []string
	attributes(v, kit.Place{File: "input", Schema: language}, "", func(pattern string) {
		provides := strings.HasPrefix(pattern, ".providers.") && strings.HasSuffix(pattern, ".requires") // checked by the compiler, and in no document
		if !varied[pattern] && unvaried[pattern] == "" && !provides {
			never = append(never, pattern)
		}
	})
	slices.Sort(never)
	for _, pattern := range slices.Compact(never) {
		t.Errorf("%s: no golden case has it with a value that another can replace: write one, or say why none is needed", pattern)
	}
	t.Logf("%d of %d edits of %d attributes open something", opened, len(tries), len(varied))
}

// attributes calls with for each attribute of the language that has a value rather than attributes.
func attributes(v kit.Validator, at kit.Place, pattern string, with func(string)) {
	at = v.Follow(at)
	if any, ok := at.Schema["anyOf"].([]any); ok {
		for _, s := range any {
			attributes(v, kit.Place{File: at.File, Schema: s.(kit.Schema)}, pattern, with)
		}
		return
	}
	properties, _ := at.Schema["properties"].(kit.Schema)
	for name := range properties {
		attributes(v, at.Child("properties").Child(name), pattern+"."+name, with)
	}
	if others, ok := at.Schema["additionalProperties"].(kit.Schema); ok {
		attributes(v, kit.Place{File: at.File, Schema: others}, pattern+".*", with)
	} else if properties == nil && at.Schema["type"] != "null" && at.Schema["type"] != "object" {
		with(pattern)
	}
	if of := v.Follow(at.Child("items")); of.Schema["properties"] != nil {
		attributes(v, of, pattern+"[]", with)
	}
}
