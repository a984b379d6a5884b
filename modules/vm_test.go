package modules_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	vm        = "../tests/vm"
	scenarios = "../tests/scenarios"
)

var (
	deployed = regexp.MustCompile(`\b(?:deploy|bring_up)\("([\w-]+)"`)
	revision = regexp.MustCompile(`\{\s+name = "([\w-]+)";\s+change`)
)

func read(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	return files
}

// TestVM evaluates the parts of the VM tests that need no nixpkgs: they must be valid Nix, and each
// must have the revisions that its script deploys, in that order.
func TestVM(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	if _, err := exec.LookPath("nix-instantiate"); err != nil {
		t.Skip("NOT RUN: no nix-instantiate in PATH")
	}
	for _, file := range glob(t, filepath.Join(vm, "*.nix")) {
		if out, err := exec.Command("nix-instantiate", "--parse", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", file, err, out)
		}
	}
	const expr = `dir: names: builtins.listToAttrs (map (n: {
	  name = n; value = import (dir + "/vm/named.nix") names (builtins.readFile (dir + "/scenarios/${n}"));
	}) (builtins.filter (n: builtins.match ".*\\.py" n != null) (builtins.attrNames (builtins.readDir (dir + "/scenarios")))))`
	names := ""
	for _, file := range glob(t, "../tests/hosts/cluster/*.nix") {
		for _, r := range revision.FindAllStringSubmatch(read(t, file), -1) {
			names += ` "` + r[1] + `"`
		}
	}
	tests, err := filepath.Abs("../tests")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("nix-instantiate", "--eval", "--strict", "--json", "--expr", "("+expr+") "+tests+" ["+names+" ]").Output()
	if err != nil {
		t.Fatal(err)
	}
	var named map[string][]string
	if err := json.Unmarshal(out, &named); err != nil {
		t.Fatal(err)
	}
	for script, got := range named {
		text, at := read(t, scenarios, script), -1
		if script == "common.py" || regexp.MustCompile("(?m)^# (bundles|operator): ").MatchString(text) {
			continue
		}
		for _, d := range deployed.FindAllStringSubmatch(text, -1) {
			i := slices.Index(got, d[1])
			if i < 0 || at < 0 && i != 0 {
				t.Errorf("%s: deploys %s, and has revisions %s", script, d[1], strings.Join(got, ", "))
			}
			at = max(at, i)
		}
		if at < 0 {
			t.Errorf("%s: deploys nothing", script)
		}
	}
}
