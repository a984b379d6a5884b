package scaffold_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/florete/florete/nix/operator/scaffold"
)

// TestQuotes reads the written texts back with Nix.
func TestQuotes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "host.nix")
	want := "a\\b\"c${d}$e\nf"
	file := scaffold.Host{Name: "x", Group: "eu/fra", Addresses: []string{want, "::1"}, Users: []string{"one"}}.File()
	if file.Path != "hosts/eu/fra/x.nix" {
		t.Errorf("got path %s", file.Path)
	}
	if err := os.WriteFile(path, []byte(file.Text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("nix-instantiate", "--eval", "--strict", "--json", path).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, file.Text)
	}
	if got := strings.TrimSpace(string(out)); got != `{"address":["a\\b\"c${d}$e\nf","::1"],"users":["one"]}` {
		t.Errorf("got %s of\n%s", got, file.Text)
	}
}
