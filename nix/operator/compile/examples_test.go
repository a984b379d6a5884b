package compile

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var (
	example  = regexp.MustCompile("(?ms)^ *```nix\n(.*?)^ *```$")
	shortKey = regexp.MustCompile(`ssh-ed25519 AAAA…|demo-1:AAAA…`)
)

// changed are the pages in docs/how-to that change a topology.
var changed = []string{
	"adopt-running-services", "connect-two-clusters", "give-access-until-friday", "publish-a-service",
	"publish-a-web-app", "put-a-database-behind-a-service", "remove-a-service",
}

// The Nix examples of docs/explain/topology.md are one cluster without an error. Those of each
// page in changed are changes to the first cluster of that page. That of README.md is a cluster.
func TestExamplesCompile(t *testing.T) {
	const page = "../../../docs/explain/topology.md"
	blocks := examples(t, page)
	if len(blocks) < 15 {
		t.Fatalf("%s has %d examples", page, len(blocks))
	}
	flake, blocks := blocks[0], blocks[1:]
	t.Run("topology", func(t *testing.T) { exampleCluster(t, flake, blocks) })
	t.Run("README", func(t *testing.T) { exampleCluster(t, examples(t, "../../../README.md")[0], nil) })
	for _, name := range changed {
		t.Run(name, func(t *testing.T) {
			exampleCluster(t, flake, examples(t, "../../../docs/how-to/"+name+".md"))
		})
	}
}

// examples returns the topologies among the Nix examples of a page, without those of NixOS
// configurations. Each key that is cut short is replaced by one of its own.
func examples(t *testing.T, path string) []string {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, e := range example.FindAllStringSubmatch(string(page), -1) {
		if strings.Contains(e[1], "config.services") {
			continue
		}
		keys := 0
		blocks = append(blocks, shortKey.ReplaceAllStringFunc(e[1], func(short string) string {
			keys++
			sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %s", path, keys, e[1]))
			name, isKey := strings.CutSuffix(short, ":AAAA…")
			if isKey {
				return name + ":" + base64.StdEncoding.EncodeToString(sum[:])
			}
			blob := append([]byte("\x00\x00\x00\x0bssh-ed25519\x00\x00\x00\x20"), sum[:]...)
			return "ssh-ed25519 " + base64.StdEncoding.EncodeToString(blob)
		}))
	}
	return blocks
}

// exampleCluster reports the errors of a flake's topology with the changes made to it in turn.
func exampleCluster(t *testing.T, flake string, changes []string) {
	t.Helper()
	dir := t.TempDir()
	root, err := os.ReadFile("../../../tests/cluster/ca.crt")
	if err != nil {
		t.Fatal(err)
	}
	writeFiles(t, dir, map[string]string{"flake.nix": flake, "ca.crt": string(root)})
	var text strings.Builder
	for _, change := range changes {
		text.WriteString("{ " + change + " }\n")
	}
	writeFiles(t, dir, map[string]string{"changes.nix": "[ " + text.String() + " ]"})
	var faults []Fault
	nixEval(t, `let
		flake = import `+dir+`/flake.nix;
		inherit (import `+golden+`/merge.nix) merge;
		self = { lastModified = 1784011430; florete.demo.check = _: null; };
		florete.lib.mkCluster = topology: topology;
		first = (flake.outputs { inherit self florete; }).florete.demo;
	in ((import ../../.).mkCluster (builtins.foldl' merge first (import `+dir+`/changes.nix))).faults`, &faults)
	for _, f := range faults {
		if f.Severity == "error" {
			t.Error(f)
		}
	}
}
