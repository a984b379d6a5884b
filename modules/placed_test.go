package modules_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var nixBlock = regexp.MustCompile("(?s)```nix\n(.*?)```")

// TestRuns evaluates the example of the how-to on every host of a cluster: the program runs only
// where the compiler placed the service.
func TestRuns(t *testing.T) {
	lib := nixpkgsLib(t)
	_, page, _ := strings.Cut(read(t, "../docs/how-to/add-a-nixos-host.md"), "\n## Run a service where the compiler places it\n")
	example := nixBlock.FindStringSubmatch(page)
	if example == nil {
		t.Fatal("docs/how-to/add-a-nixos-host.md has no example of where services run")
	}
	file := t.TempDir() + "/example.nix"
	if err := os.WriteFile(file, []byte(example[1]), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("nix-instantiate", "--eval", "--strict", "--json", "--expr",
		fmt.Sprintf("import ./testdata/placed.nix (import %q) %s", lib, file))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Hosts map[string]struct {
			Opensearch *struct {
				Enable   bool
				Settings map[string][]string
			}
			Runs map[string]bool
		}
		Services map[string][]string
		Without  map[string]bool
		Unknown  bool
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Services["search"]) != 2 || len(got.Services["standby"]) != 1 {
		t.Fatalf("placed %v", got.Services)
	}
	for host, h := range got.Hosts {
		for service, hosts := range got.Services {
			if runs, known := h.Runs[service]; !known || runs != slices.Contains(hosts, host) {
				t.Errorf("%s: runs.%s is %v, it is on %v", host, service, runs, hosts)
			}
		}
		hosts := got.Services["search"]
		on := slices.Contains(hosts, host)
		if (h.Opensearch != nil && h.Opensearch.Enable) != on {
			t.Errorf("%s: the example makes %+v, search is on %v", host, h.Opensearch, hosts)
		}
		if on && !slices.Equal(h.Opensearch.Settings["discovery.seed_hosts"], slices.DeleteFunc(slices.Clone(hosts), func(h string) bool { return h == host })) {
			t.Errorf("%s: its peers are %v of %v", host, h.Opensearch.Settings, hosts)
		}
	}
	if len(got.Without) > 0 || got.Unknown {
		t.Errorf("without a cluster %v, on a host that is none of its: %v", got.Without, got.Unknown)
	}
}
