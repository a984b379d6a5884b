package compile

import (
	"encoding/json"
	"flag"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

var update = flag.Bool("update", false, "rewrite what the golden cases expect")

const golden = "../../../tests/golden/compiler"

// result is the output of tests/golden/compiler/default.nix for one topology.
type result struct {
	Report    string
	Documents map[string]map[string]Raw
}

// evaluate runs every case in one Nix process.
var evaluate = sync.OnceValue(func() map[string]map[string]result {
	cmd := exec.Command("nix-instantiate", "--eval", "--strict", "--json", golden)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		panic(err)
	}
	var cases map[string]map[string]result
	if err := json.Unmarshal(out, &cases); err != nil {
		panic(err)
	}
	return cases
})

// TestGolden compares the compiler's output byte for byte.
func TestGolden(t *testing.T) {
	for name, files := range evaluate() {
		t.Run(name, func(t *testing.T) {
			got := produced(t, files["topology.nix"])
			dir := filepath.Join(golden, name)
			if *update {
				rewrite(t, dir, got)
			}
			if want := expected(t, dir); !maps.Equal(got, want) {
				for _, path := range slices.Sorted(maps.Keys(merged(got, want))) {
					if got[path] != want[path] {
						g, w := around(got[path], want[path])
						t.Errorf("%s:\n got %s\nwant %s", path, g, w)
					}
				}
			}
			for file, r := range files {
				switch {
				case file == "topology.nix":
				case file == "near-miss.nix":
					produced(t, r)
					if r.Report != "" {
						t.Errorf("near-miss.nix: %s", r.Report)
					}
				case !maps.Equal(produced(t, r), got):
					t.Errorf("%s does not compile to the bytes of topology.nix", file)
				}
			}
		})
	}
}

// TestEveryRuleHasACase checks that every rule of the topology has a directory with its ID that
// violates it, with a near miss, and that every such directory belongs to a rule.
func TestEveryRuleHasACase(t *testing.T) {
	cases, all := evaluate(), rules(t)
	for name := range cases {
		if id, _, _ := strings.Cut(strings.ToUpper(name), "-"); caseOfRule.MatchString(name) && all[id].Title == "" {
			t.Errorf("%s: there is no rule %s", name, id)
		}
	}
	for id := range all {
		if id >= "FL050" && id < "FL060" && id != "FL058" || id >= "FL125" && id <= "FL128" || id == "FL139" || id == "FL147" || id == "FL149" || id == "FL177" || id == "FL187" { // found by florctl
			continue
		}
		dirs, _ := filepath.Glob(filepath.Join(golden, strings.ToLower(id)+"-*"))
		if len(dirs) != 1 {
			t.Errorf("%s: want one case directory, found %v", id, dirs)
			continue
		}
		files := cases[filepath.Base(dirs[0])]
		if !strings.Contains(files["topology.nix"].Report, "  "+id+" ") {
			t.Errorf("%s: %s does not fire it", id, dirs[0])
		}
		if _, ok := files["near-miss.nix"]; !ok {
			t.Errorf("%s: %s has no near miss", id, dirs[0])
		}
	}
}

var caseOfRule = regexp.MustCompile(`^fl[0-9]{3}-`)

// rules returns the rules of nix/check/rules.nix by ID.
func rules(t *testing.T) map[string]struct{ Severity, Title string } {
	t.Helper()
	all, err := readRules()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var readRules = sync.OnceValues(func() (all map[string]struct{ Severity, Title string }, err error) {
	out, err := exec.Command("nix-instantiate", "--eval", "--strict", "--json", "../../check/rules.nix").Output()
	if err == nil {
		err = json.Unmarshal(out, &all)
	}
	return all, err
})

// produced returns a result as files. It decodes the documents strictly.
func produced(t *testing.T, r result) map[string]string {
	files := map[string]string{}
	if r.Report != "" {
		files["expected.txt"] = r.Report
	}
	for host, kinds := range r.Documents {
		for kind, d := range kinds {
			if _, err := d.Open(); err != nil {
				t.Errorf("%s of %s: %v", kind, host, err)
			}
			files[filepath.Join("expected", host, kind+".json")] = d.Body
			files[filepath.Join("expected", host, kind+".envelope.json")] = d.Envelope
		}
	}
	return files
}

func expected(t *testing.T, dir string) map[string]string {
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		if err != nil || d.IsDir() || !strings.HasPrefix(rel, "expected") {
			return err
		}
		b, err := os.ReadFile(path)
		files[rel] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func rewrite(t *testing.T, dir string, files map[string]string) {
	if err := os.RemoveAll(filepath.Join(dir, "expected")); err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(filepath.Join(dir, "expected.txt"))
	for rel, text := range files {
		path := filepath.Join(dir, rel)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// around cuts two texts to the surroundings of their first difference.
func around(a, b string) (string, string) {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	cut := func(s string) string { return s[max(0, n-80):min(len(s), n+200)] }
	return cut(a), cut(b)
}

func merged(a, b map[string]string) map[string]string {
	m := maps.Clone(a)
	maps.Copy(m, b)
	return m
}
