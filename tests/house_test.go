// Package tests holds the rules of the house: who may import whom, and what the
// top level is made of.
package tests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

type pkg struct {
	ImportPath, Name, Doc string
	Imports               []string
	GoFiles               []string
}

// may says, for each part, which other parts its libraries import. A reader of
// one part need not read what is not listed.
var may = []struct{ from, to string }{
	{"florete/nix/", "florete florete/nix/"},
	{"florete/providers/", "florete florete/providers/"},
	{"florete/activation/", "florete florete/activation/ florete/providers/api/"},
	{"florete/agent/", "florete florete/agent/ florete/providers/api/race/"}, // both sides race a host's addresses
	{"florete/tests/", "florete florete/nix/ florete/providers/ florete/activation/ florete/agent/ florete/tests/"},
	{"florete/", ""},
}

func allowed(from, to string) bool {
	if isCmd(to) {
		return false
	}
	if isCmd(from) {
		return true
	}
	for _, rule := range may {
		if !strings.HasPrefix(from+"/", rule.from) {
			continue
		}
		return slices.ContainsFunc(strings.Fields(rule.to), func(t string) bool {
			return to == t || strings.HasSuffix(t, "/") && strings.HasPrefix(to+"/", t)
		})
	}
	return false
}

func isCmd(path string) bool { return strings.Contains(path+"/", "/cmd/") }

func ours(path string) bool { return path == "florete" || strings.HasPrefix(path, "florete/") }

func TestImports(t *testing.T) {
	for _, p := range packages(t) {
		for _, to := range p.Imports {
			if ours(to) && !allowed(p.ImportPath, to) {
				t.Errorf("%s imports %s, which the house does not allow", p.ImportPath, to)
			}
		}
	}
}

func TestImportRule(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{"florete", "florete/agent", false},
		{"florete/agent", "florete", true},
		{"florete/agent/acl", "florete/agent/wire", true},
		{"florete/agent", "florete/providers/api", false},
		{"florete/agent/transport", "florete/providers/api/race", true},
		{"florete/activation", "florete/providers/api", true},
		{"florete/activation", "florete/providers/apiary", false},
		{"florete/activation", "florete/providers/server", false},
		{"florete/agent/cmd/flor", "florete/activation", true},
		{"florete/tests/sim", "florete/agent/cmd/flor", false},
		{"florete/nix/plan", "florete/nix/compile", true},
		{"florete/nix/compile", "florete/providers/ca", false},
	} {
		if allowed(c.from, c.to) != c.want {
			t.Errorf("%s importing %s: allowed is %v", c.from, c.to, !c.want)
		}
	}
}

func TestPackageDocs(t *testing.T) {
	for _, p := range packages(t) {
		if p.Doc == "" && len(p.GoFiles) > 0 {
			t.Errorf("%s has no package doc", p.ImportPath)
		}
	}
}

func TestTopLevel(t *testing.T) {
	entries, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	fixed := strings.Fields("flake.nix flake.lock nix modules providers activation agent tests go.mod go.sum README.md LICENSE result")
	for _, e := range entries {
		name := e.Name()
		if !slices.Contains(fixed, name) && !strings.HasPrefix(name, ".") && !strings.HasSuffix(name, ".go") {
			t.Errorf("top level holds %s, which is no part of the house", name)
		}
	}
}

func packages(t *testing.T) (all []pkg) {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Name,Doc,Imports,GoFiles", "florete/...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(fmt.Errorf("go list: %w: %s", err, stderr.String()))
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 3 {
		t.Fatalf("go list found %d packages", len(all))
	}
	return all
}
