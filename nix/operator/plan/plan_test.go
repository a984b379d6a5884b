package plan

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/florete/florete/nix/operator/compile"
)

var update = flag.Bool("update", false, "rewrite the golden files")

type pair struct{ Before, After compile.Snapshot }

// cases are testdata/*.nix, each two topologies, evaluated in one Nix process.
var cases = sync.OnceValue(func() map[string]pair {
	cmd := exec.Command("nix-instantiate", "--eval", "--strict", "--json", "testdata")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		panic(err)
	}
	var all map[string]pair
	if err := json.Unmarshal(out, &all); err != nil {
		panic(err)
	}
	return all
})

// TestPlan compares each case's plan with the text beside it.
func TestPlan(t *testing.T) {
	if len(cases()) < 10 {
		t.Fatalf("found %d cases", len(cases()))
	}
	for name, c := range cases() {
		p, err := Compare(c.Before, c.After)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := p.Text(&b, false); err != nil {
			t.Fatal(err)
		}
		golden(t, filepath.Join("testdata", strings.TrimSuffix(name, ".nix")+".txt"), b.String())
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s:\n got %s\nwant %s", path, got, want)
	}
}

// TestForms checks a plan as data, and in colour.
func TestForms(t *testing.T) {
	c := cases()["service-moves.nix"]
	p, err := Compare(c.Before, c.After)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/service-moves.json", string(b)+"\n")
	var text, colour strings.Builder
	if err := p.Text(&text, false); err != nil {
		t.Fatal(err)
	}
	if err := p.Text(&colour, true); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(colour.String(), "\x1b[1;33m! node/alpha may now act as service/wiki\x1b[0m\n") {
		t.Errorf("got %q", colour.String())
	}
	stripped := strings.NewReplacer(green, "", red, "", yellow, "", bold, "", plain, "").Replace(colour.String())
	if stripped != text.String() {
		t.Errorf("colour says something else:\n%s", stripped)
	}
}

// TestBackAndForth checks that the reverse of a plan closes what the plan opens, and that equal
// topologies have an empty plan.
func TestBackAndForth(t *testing.T) {
	for name, c := range cases() {
		there, err := Compare(c.Before, c.After)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Compare(c.After, c.Before)
		if err != nil {
			t.Fatal(err)
		}
		if !equal(there.Opened, back.Closed) || !equal(there.Closed, back.Opened) {
			t.Errorf("%s: there opens %v and closes %v, back opens %v and closes %v", name, there.Opened, there.Closed, back.Opened, back.Closed)
		}
		if still, err := Compare(c.After, c.After); err != nil || !still.Empty() {
			t.Errorf("%s: against itself: %+v, %v", name, still, err)
		}
	}
}

func equal(a, b []Right) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// TestOwn checks that host-specific names are not confused with those of a host whose name has the
// same prefix.
func TestOwn(t *testing.T) {
	for words, want := range map[string]string{
		"publishes service/h1/wiki":             "publishes its own service/wiki",
		"service/h10/wiki allows node/h1":       "service/h10/wiki allows its node",
		"service/h1 allows node/h10":            "service/h1 allows node/h10",
		"knows node/h1-b, node/h1 and node/h1x": "knows node/h1-b, its node and node/h1x",
	} {
		if got := relativeTo("h1", words); got != want {
			t.Errorf("%s: got %s", words, got)
		}
	}
}

// TestEveryValueIsSeen checks that the plan has a line for every changed value of a document.
func TestEveryValueIsSeen(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	tried := 0
	for _, c := range cases() {
		for host, docs := range c.After.Documents {
			for kind, raw := range docs {
				var body any
				if err := json.Unmarshal([]byte(raw.Body), &body); err != nil {
					t.Fatal(err)
				}
				each(body, func(where string) {
					b, err := json.Marshal(body)
					if err != nil {
						t.Fatal(err)
					}
					other := documents{kind: {Body: string(b)}}
					for k, r := range docs {
						if k != kind {
							other[k] = r
						}
					}
					found, err := changes("changed", docs, other)
					if err != nil || len(found) == 0 {
						t.Errorf("%s of %s: a change of %s is not seen (%v)", kind, host, where, err)
					}
					for _, f := range found {
						if _, words := f.prose("golden.flor"); words == "" {
							t.Errorf("%s of %s: nothing to say of %+v", kind, host, f)
						}
					}
					tried++
				})
			}
		}
	}
	if tried < 500 {
		t.Errorf("tried only %d changes", tried)
	}
}

// each changes every scalar below v in turn, shortens every list and reorders it.
func each(v any, try func(where string)) {
	switch v := v.(type) {
	case map[string]any:
		for key, old := range v {
			if other := altered(old); other != nil {
				v[key] = other
				try(key)
				v[key] = old
			}
			each(old, func(where string) { try(key + "." + where) })
		}
	case []any:
		for i, old := range v {
			if i > 0 && !reflect.DeepEqual(v[0], old) {
				v[0], v[i] = v[i], v[0]
				try("[] in another order")
				v[0], v[i] = v[i], v[0]
			}
			if other := altered(old); other != nil {
				v[i] = other
				try("[]")
				v[i] = old
			}
			each(old, func(where string) { try("[]." + where) })
		}
	}
}

func altered(v any) any {
	switch v := v.(type) {
	case string:
		return v + "x"
	case float64:
		return v + 1
	case []any:
		if len(v) > 0 {
			return v[1:]
		}
	}
	return nil
}
