// Package modules_test evaluates the NixOS modules against nixpkgs' lib.
package modules_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite what the cases expect")

// result is the output of testdata/eval.nix for one configuration: its errors, or its options.
type result struct {
	Errors []string
	Units  map[string]string
	Config json.RawMessage
}

type evaluation struct {
	Cases        map[string]result
	Plain        map[string]map[string]map[string]string // units without NixOS, by cluster and host
	Undocumented []string
	Options      []option
}

// TestModules evaluates every configuration in testdata/cases, in one Nix process.
func TestModules(t *testing.T) {
	got := evaluate(t, nixpkgsLib(t))
	for name, r := range got.Cases {
		t.Run(name, func(t *testing.T) {
			r.check(t, filepath.Join("testdata/cases", strings.TrimSuffix(name, ".nix")+".json"))
		})
	}
	// A host is the same with and without NixOS.
	for name, hosts := range map[string][]string{
		"two-lines.nix":        {"demo/ursula"},
		"provider-host.nix":    {"demo/drhorrible"},
		"chosen-cluster.nix":   {"demo/laptop"},
		"one-role.nix":         {"demo/laptop"},
		"two-clusters.nix":     {"demo/ursula", "blue/ursula"},
		"further-provider.nix": {"blue/drhorrible"},
	} {
		plain := map[string]string{}
		for _, at := range hosts {
			cluster, host, _ := strings.Cut(at, "/")
			maps.Copy(plain, got.Plain[cluster][host])
		}
		sameUnits(t, got.Cases[name].Units, plain)
	}
	// Nothing of a further cluster is called as in the first, but the services of its providers.
	for _, name := range []string{"further-needs.nix", "further-provider.nix"} {
		config := strings.ReplaceAll(string(got.Cases[name].Config), "cert-service-florete-", "")
		if found := first.FindAllString(config, -1); found != nil || config == "" {
			t.Errorf("%s: has %s", name, found)
		}
	}
	checkOptionsPage(t, got.Options)
	if len(got.Undocumented) > 0 {
		t.Errorf("options without description, or without an example: %s", got.Undocumented)
	}
}

func (r result) check(t *testing.T, path string) {
	var got any = r.Config
	if r.Errors != nil {
		got = r.Errors
	}
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	if err := out.Encode(got); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("%s: run with -update and look at the difference; got\n%s", path, &b)
	}
}

// only matches directives for which a host without NixOS has no settings.
var only = regexp.MustCompile(`(?m)^(X-Settings|LoadCredential)=.*\n`)

// first matches names and paths that do not belong to a further cluster.
var first = regexp.MustCompile(`"[^"]*\bflorete[-/][^"]*"`)

func sameUnits(t *testing.T, got, plain map[string]string) {
	if len(got) == 0 {
		t.Error("no units")
	}
	for name, want := range plain {
		text, ok := got[name]
		// A case may leave the forwarder out, and what guards it; NixOS writes /etc/hosts itself.
		if !ok && !strings.HasSuffix(name, "-agent.service") && !strings.HasSuffix(name, "-guard.service") && !strings.HasSuffix(name, "-hosts-file.service") {
			t.Errorf("%s: the module does not make it", name)
		}
		if ok && only.ReplaceAllString(text, "") != want {
			t.Errorf("%s: the module makes\n%s\na plain host has\n%s", name, text, want)
		}
	}
	for name := range got {
		if plain[name] == "" {
			t.Errorf("%s: a plain host has no such unit", name)
		}
	}
}

func evaluate(t *testing.T, lib string) (e evaluation) {
	cmd := exec.Command("nix-instantiate", "--eval", "--strict", "--json", "--expr",
		fmt.Sprintf("import ./testdata/eval.nix (import %q)", lib))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &e); err != nil {
		t.Fatal(err)
	}
	cases, err := filepath.Glob("testdata/cases/*.nix")
	if err != nil || len(cases) != len(e.Cases) || len(cases) < 10 {
		t.Fatalf("%d cases, evaluated %d: %v", len(cases), len(e.Cases), err)
	}
	return e
}

// nixpkgsLib returns the path of nixpkgs' lib: $NIXPKGS_LIB, or one in the Nix path.
func nixpkgsLib(t *testing.T) string {
	if dir := os.Getenv("NIXPKGS_LIB"); dir != "" {
		for _, at := range []string{dir, filepath.Join(dir, "lib")} {
			if _, err := os.Stat(filepath.Join(at, "modules.nix")); err == nil {
				return at
			}
		}
		t.Fatalf("NIXPKGS_LIB %s: neither nixpkgs' lib nor a directory with it", dir)
	}
	out, err := exec.Command("nix-instantiate", "--find-file", "nixpkgs/lib").Output()
	if err != nil {
		t.Skip("NOT RUN: the NixOS modules are not evaluated: there is no nixpkgs in the Nix path; " +
			"set NIXPKGS_LIB to the lib folder of nixpkgs, which github.com/nix-community/nixpkgs.lib has by itself")
	}
	return strings.TrimSpace(string(out))
}
