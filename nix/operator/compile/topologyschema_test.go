package compile

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/florete/florete/tests/kit"
)

// TestTopologyIsItsSchema checks the evaluated topology, which configurations of hosts read, against
// its schema, which must be complete, and against a golden file.
func TestTopologyIsItsSchema(t *testing.T) {
	b, err := os.ReadFile("../../schema/topology.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var s schema
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	v := kit.Validator{All: map[string]schema{"topology": s}}
	var cases map[string]schema
	nixEval(t, `let
		key = name: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA" + builtins.substring 8 42 ((import ../../lib/names.nix).sri name);
		inherit (import `+golden+`/merge.nix) merge;
		base = import `+golden+`/base.nix { inherit key; };
		dirs = builtins.readDir `+golden+`;
		all = builtins.mapAttrs (n: _: (import ../../default.nix).mkCluster (import (`+golden+` + "/${n}/topology.nix") { inherit base key merge; }))
			(builtins.intersectAttrs { facts = 1; federation = 1; operators = 1; outside = 1; own-kinds = 1; placement = 1; ports = 1; public = 1; public-ports = 1; relays = 1; secrets = 1; shared-store = 1; ssh-recorded = 1; } dirs);
	in builtins.mapAttrs (_: c: c.topology) all`, &cases)
	if len(cases) != 13 {
		t.Errorf("found %d of the cases", len(cases))
	}
	for name, topology := range cases {
		at := kit.Place{File: "topology", Schema: s}
		if err := v.Check(at, topology); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		topology["more"] = true
		if v.Check(at, topology) == nil {
			t.Errorf("%s: the schema accepts an unknown attribute", name)
		}
		delete(topology, "more")
		for key := range topology {
			if v.Check(at, without(topology, key)) == nil {
				t.Errorf("%s: the schema accepts a topology without %s", name, key)
			}
		}
	}
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	if err := out.Encode(cases["facts"]); err != nil {
		t.Fatal(err)
	}
	const file = "testdata/topology.json"
	if *update {
		if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || text.String() != string(want) {
		t.Errorf("%s: %v: run with -update and look at the difference; got\n%s", file, err, &text)
	}
}
