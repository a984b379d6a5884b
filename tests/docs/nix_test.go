package docs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	docpages "github.com/florete/florete/tests/docs/pages"
)

var (
	// ofNixOS matches configuration of NixOS, which the compiler does not know.
	ofNixOS = regexp.MustCompile(`services\.florete\b|services\.florete_|\bconfig\.|nix\.settings|nixosModules|pkgs\.`)
	// whole matches a block that is a file of Nix, and not attributes of a set.
	whole = regexp.MustCompile(`^(\s*#.*\n)*\s*[{\[(]`)
	// beside matches a file beside the topology.
	beside = regexp.MustCompile(`\./([\w-]+\.[\w.-]+)`)
	// attribute matches the name of an attribute of the outermost set.
	attribute = regexp.MustCompile(`(?m)^([a-zA-Z]+)[. =]`)
)

// TestNix checks that Nix can parse each block of Nix on a page, as a file or as the attributes of
// a set. If all of these are attributes of a topology, the compiler must also know their form.
func TestNix(t *testing.T) {
	root, dir := docpages.Root(t), t.TempDir()
	known := topologyAttributes(t, root)
	crt, err := os.ReadFile(filepath.Join(root, "tests/cluster/ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, content []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	var files, topologies, places []string
	for _, p := range docpages.All(t) {
		for _, b := range p.Blocks("nix") {
			place := fmt.Sprintf("%s:%d", b.Page, b.Line)
			text := b.Text
			if !whole.MatchString(text) {
				text = "{ " + text + "}"
			}
			name := strings.NewReplacer("/", "_", ":", "_").Replace(place) + ".nix"
			// With with, Nix leaves names of the surroundings, such as lib, for later.
			files = append(files, write("parse_"+name, []byte("with { }; "+text)))
			names := attribute.FindAllStringSubmatch(b.Text, -1)
			isTopology := len(names) > 0 && !whole.MatchString(b.Text) && !ofNixOS.MatchString(b.Text)
			for _, m := range names {
				isTopology = isTopology && known[m[1]]
			}
			if !isTopology {
				continue
			}
			for _, m := range beside.FindAllStringSubmatch(text, -1) {
				if strings.HasSuffix(m[1], ".json") {
					write(m[1], []byte(`{"keys":[]}`))
				} else {
					write(m[1], crt)
				}
			}
			topologies = append(topologies, write(name, []byte(text)))
			places = append(places, place)
		}
	}
	if len(files) < 50 || len(topologies) < 30 {
		t.Errorf("%d blocks of Nix found, %d of them topologies, want more: is their form still known?", len(files), len(topologies))
	}
	if out, err := exec.Command("nix-instantiate", append([]string{"--parse"}, files...)...).CombinedOutput(); err != nil {
		_, text, _ := strings.Cut(string(out), "error:")
		t.Fatalf("a block of Nix, from page and line: %v: %s", err, text)
	}
	for i, faults := range formFaults(t, root, topologies) {
		for _, f := range faults {
			t.Errorf("%s: %s", places[i], f)
		}
	}
}

func topologyAttributes(t *testing.T, root string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "nix/schema/topology.schema.json"))
	var schema struct {
		Properties map[string]any `json:"properties"`
	}
	if err == nil {
		err = json.Unmarshal(text, &schema)
	}
	if err != nil || len(schema.Properties) < 10 {
		t.Fatalf("%d attributes of a topology: %v", len(schema.Properties), err)
	}
	known := map[string]bool{}
	for name := range schema.Properties {
		known[name] = true
	}
	return known
}

// formFaults returns the faults of form of each topology: names that the language does not know, and
// values of another type. Keys are cut short on pages, and the rest of a topology is elsewhere.
func formFaults(t *testing.T, root string, topologies []string) [][]string {
	t.Helper()
	out, err := exec.Command("nix-instantiate", "--eval", "--strict", "--json", "--expr",
		`map (file: ((import `+root+`/nix).mkCluster (import file)).faults) [ `+strings.Join(topologies, " ")+` ]`).CombinedOutput()
	var faults [][]struct{ ID, Place, Problem, Remedy string }
	if err == nil {
		err = json.Unmarshal(out, &faults)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	all := make([][]string, len(topologies))
	for i, of := range faults {
		for _, f := range of {
			form := f.ID == "FL001" || f.ID == "FL002"
			if form && !strings.HasSuffix(f.Place, ".sshHostKey") && f.Place != "mkCluster" {
				all[i] = append(all[i], f.ID+" "+f.Place+": "+f.Problem+": "+f.Remedy)
			}
		}
	}
	return all
}
