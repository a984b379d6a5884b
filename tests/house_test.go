// Package tests checks the rules of the repository: which packages may import which, and the
// content of the top level.
package tests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

type pkg struct {
	ImportPath, Name, Doc string
	Imports               []string
	GoFiles               []string
}

const module = "github.com/florete/florete"

// internal contains the packages that all other parts may import, and that import only each other.
// Code that several parts share belongs there. Main packages may import all parts except tests,
// and tests all parts.
const internal = "internal"

// operator contains the Go code of nix. It calls the control API of providers and signs the
// documents they serve, so it alone imports another part: providers, which do not import it.
const operator = "nix/operator/"

func allowed(from, to string) bool {
	from, to = strings.TrimPrefix(from, module+"/"), strings.TrimPrefix(to, module+"/")
	fromPart, toPart := part(from), part(to)
	switch {
	case fromPart == "tests":
		return !isCmd(to)
	case isCmd(to) || toPart == "tests" || fromPart == internal && toPart != internal:
		return false
	case isCmd(from) || toPart == internal || fromPart == toPart:
		return true
	case strings.HasPrefix(from, operator):
		return toPart == "providers"
	}
	return false
}

func part(importPath string) string {
	first, _, _ := strings.Cut(importPath, "/")
	return first
}

func isCmd(path string) bool { return strings.Contains(path+"/", "/cmd/") }

func ours(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

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
		{"internal/trust", "agent", false},
		{"internal/trust", "internal/document", true},
		{"agent", "internal/trust", true},
		{"agent/forward/acl", "agent/forward/wire", true},
		{"agent", "activation", false},
		{"activation", "providers/server", false},
		{"activation", "internalised", false},
		{"providers/server", "activation/fetch", false},
		{"agent/cmd/flor", "activation", true},
		{"nix/cmd/florctl", "providers/archive", true},
		{"tests/sim", "agent/cmd/flor", false},
		{"tests/kit/agenttest", "agent/forward", true},
		{"tests/kit", "agent/cmd/flor", false},
		{"agent/forward", "tests/kit/agenttest", false},
		{"agent/cmd/flor", "tests/kit", false},
		{"internal/trust", "tests/kit", false},
		{"nix/operator/plan", "nix/operator/compile", true},
		{"nix/operator/client", "providers/control", true},
		{"nix/operator/client", "activation", false},
		{"providers/control", "nix/operator/client", false},
	} {
		if allowed(path.Join(module, c.from), path.Join(module, c.to)) != c.want {
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
	fixed := strings.Fields("flake.nix flake.lock docs nix modules providers activation agent internal tests go.mod go.sum README.md LICENSE result")
	for _, e := range entries {
		name := e.Name()
		if !slices.Contains(fixed, name) && !strings.HasPrefix(name, ".") {
			t.Errorf("top level holds %s, which is no part of the house", name)
		}
	}
}

func packages(t *testing.T) (all []pkg) {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Name,Doc,Imports,GoFiles", module+"/...")
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
