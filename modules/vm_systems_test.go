package modules_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// vmSystem is a host of a VM test, or one of its specialisations.
type vmSystem struct {
	Errors          []string
	Units           []string
	Services        map[string][]string
	Specialisations map[string]vmSystem
}

// TestVMSystems evaluates the VM tests with nixpkgs' lib and a stand-in for the rest of nixpkgs:
// every host in every revision must be a system that its modules accept.
func TestVMSystems(t *testing.T) {
	lib := nixpkgsLib(t)
	cmd := exec.Command("nix-instantiate", "--eval", "--strict", "--json", "--expr",
		fmt.Sprintf("import ./testdata/vm.nix (import %q) %q", lib, vmKeys(t)))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var tests map[string]struct {
		Name, TestScript string
		Hosts            map[string]vmSystem
	}
	if err := json.Unmarshal(out, &tests); err != nil {
		t.Fatal(err)
	}
	scripts, err := filepath.Glob(filepath.Join(scenarios, "*.py"))
	if err != nil || len(scripts) == 0 {
		t.Fatal(scripts, err)
	}
	for _, script := range scripts {
		name, text := filepath.Base(script), read(t, script)
		if name == "common.py" || regexp.MustCompile("(?m)^# (bundles|operator): ").MatchString(text) {
			continue
		}
		test, ok := tests["vm-"+strings.ReplaceAll(strings.TrimSuffix(name, ".py"), "_", "-")]
		if !ok || !strings.HasSuffix(test.TestScript, text) || len(test.Hosts) < 4 {
			t.Errorf("%s: no test of it with hosts: %s", name, test.Name)
		}
		for host, system := range test.Hosts {
			system.check(t, fmt.Sprintf("%s: %s", name, host))
			for revision, s := range system.Specialisations {
				s.check(t, fmt.Sprintf("%s: %s in %s", name, host, revision))
			}
		}
		if _, ok := test.Hosts["ursula"].Services["outline"]; !ok {
			t.Errorf("%s: ursula has no outline", name)
		}
	}
	t.Run("boot", func(t *testing.T) {
		t.Skip("NOT RUN: the systems of the VM tests are evaluated, and neither built nor booted: that needs nixpkgs and /dev/kvm; " +
			"nix build .#checks.x86_64-linux.vm-first-boot")
	})
}

func (s vmSystem) check(t *testing.T, what string) {
	t.Helper()
	for _, unit := range []string{"florete-activate.service", "florete-agent.service"} {
		if len(s.Errors) > 0 || !slices.Contains(s.Units, unit) {
			t.Errorf("%s: %q, units %v, want %s", what, s.Errors, s.Units, unit)
		}
	}
}

// vmKeys returns a directory with the files of tests/vm/keys.nix that the evaluation reads.
func vmKeys(t *testing.T) string {
	t.Helper()
	hosts := regexp.MustCompile(`for host in (.+) next; do`).FindStringSubmatch(read(t, vm, "keys.nix"))
	if hosts == nil {
		t.Fatal("keys.nix names no hosts")
	}
	key := func(letter int) string {
		return "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA" + strings.Repeat(string(rune('A'+letter)), 41) + "E"
	}
	addresses, keys := map[string]string{}, map[string]string{}
	for i, host := range strings.Fields(hosts[1]) {
		addresses[host], keys[host] = fmt.Sprintf("10.77.0.%d", i+1), key(i)
	}
	b, err := json.Marshal(map[string]any{
		"keys":        []string{"golden-1:XCy7rhw63wRQyvwr3R1VkY5GBuQyEG/dv/+xh5K2B8c="},
		"nextHostKey": key(25), "addresses": addresses, "sshHostKeys": keys,
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	const root = "-----BEGIN CERTIFICATE-----\nZ29sZGVu\n-----END CERTIFICATE-----\n"
	for name, text := range map[string]string{"facts.json": string(b), "operator/ca.crt": root, "operator/next/ca.crt": root} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
