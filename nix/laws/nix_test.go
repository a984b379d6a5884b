package laws

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/nix/operator/compile"
)

// compiled is the result of compiling one topology.
type compiled struct {
	Report    string
	Topology  compile.Topology
	Documents map[string]map[string]compile.Raw // of all hosts at once
	Alone     map[string]map[string]compile.Raw // of each host alone; only set by evaluate
}

const function = `alone: file:
let
  lib = import ../.;
  inherit (import ../lib/fault.nix) report;
  one = topology:
    let
      c = lib.mkCluster topology;
      faults = builtins.filter (f: f.severity == "error") c.faults;
    in
    if faults != [ ] then { report = report c.name faults; }
    else { report = ""; inherit (c) topology; documents = c.compiled; alone = if alone then c.documents else { }; };
in
map one (builtins.fromJSON (builtins.readFile file))`

// evaluate compiles many topologies with one Nix process.
func evaluate(t *testing.T, nix string, topologies []json.RawMessage) []compiled {
	t.Helper()
	all := compileAll(t, nix, topologies, true)
	for i, c := range all {
		if c.Report != "" {
			t.Fatalf("the generator made a topology with faults: %s\n%s", c.Report, topologies[i])
		}
	}
	return all
}

// tryAll compiles topologies that may have faults.
func tryAll(t *testing.T, nix string, topologies []json.RawMessage) []compiled {
	t.Helper()
	return compileAll(t, nix, topologies, false)
}

func compileAll(t *testing.T, nix string, topologies []json.RawMessage, alone bool) []compiled {
	t.Helper()
	file := filepath.Join(t.TempDir(), "topologies.json")
	b, err := json.Marshal(topologies)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(nix, "--eval", "--strict", "--json", "--expr", fmt.Sprintf("(%s) %t %s", function, alone, file))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	var all []compiled
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func (c compiled) manifests(t *testing.T) map[string]document.Manifest {
	t.Helper()
	all := map[string]document.Manifest{}
	for name, docs := range c.Documents {
		d, err := docs[document.DocManifest].Open()
		if err != nil {
			t.Fatal(err)
		}
		all[name] = d.Manifest()
	}
	return all
}

func (c compiled) policies(t *testing.T) map[string]document.Policy {
	t.Helper()
	all := map[string]document.Policy{}
	for name, docs := range c.Documents {
		raw, ok := docs[document.DocPolicy]
		if !ok {
			continue
		}
		d, err := raw.Open()
		if err != nil {
			t.Fatal(err)
		}
		all[name] = d.Policy()
	}
	return all
}

func (c compiled) snapshot() compile.Snapshot {
	return compile.Snapshot{Topology: c.Topology, Documents: c.Documents}
}
