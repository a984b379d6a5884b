package modules_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPackage compares package.nix with the repository: the hash of the vendored modules, and the
// commands.
func TestPackage(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	out, err := exec.Command("nix-instantiate", "--eval", "--strict", "--json", "--expr", `import ./package.nix {
		lib.platforms.linux = [ ];
		buildGoModule = p: { inherit (p) vendorHash subPackages; };
	}`).Output()
	if err != nil {
		t.Fatal(err)
	}
	var p struct {
		VendorHash  string
		SubPackages []string
	}
	if err := json.Unmarshal(out, &p); err != nil {
		t.Fatal(err)
	}
	commands, err := filepath.Glob("../*/cmd/*")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(p.SubPackages, " "), strings.ReplaceAll(strings.Join(commands, " "), "../", ""); got != want {
		t.Errorf("package.nix: subPackages are %s, the commands are %s", got, want)
	}
	hash := vendorHash(t)
	switch {
	case p.VendorHash == hash:
	case *update:
		text, err := os.ReadFile("package.nix")
		if err == nil {
			err = os.WriteFile("package.nix", []byte(strings.Replace(string(text), p.VendorHash, hash, 1)), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("package.nix: vendorHash is %s: write %s, or run with -update", p.VendorHash, hash)
	}
}

// vendorHash returns the hash of the modules that nixpkgs' buildGoModule vendors.
func vendorHash(t *testing.T) string {
	vendor := filepath.Join(t.TempDir(), "vendor")
	cmd := exec.Command("go", "mod", "vendor", "-o", vendor)
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("NOT RUN: the vendored modules are not hashed: go mod vendor: %v: %s", err, out)
	}
	sri, err := exec.Command("nix", "--extra-experimental-features", "nix-command", "hash", "path", "--sri", vendor).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(sri))
}
