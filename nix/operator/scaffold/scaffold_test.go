package scaffold_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/florete/florete/nix/operator/authority"
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

// TestPathSalt checks that each new cluster has a random text of its own for names that relays see.
func TestPathSalt(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it evaluates two flakes")
	}
	t.Setenv("NIX_CONFIG", "experimental-features = nix-command flakes\n"+os.Getenv("NIX_CONFIG"))
	for _, name := range []string{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"} {
		t.Setenv(name, "test")
	}
	repo, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	keys := filepath.Join(t.TempDir(), "keys")
	line := regexp.MustCompile(`(?m)^  pathSalt = "([A-Z2-7]{26})";$`)
	salts := map[string]bool{}
	for range 2 {
		dir, _, err := scaffold.Init(t.Context(), &scaffold.Cluster{Name: "demo", Florete: "path:" + repo}, t.TempDir(), keys, authority.RootKeyFlags(&cobra.Command{}))
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "cluster.nix"))
		if err != nil {
			t.Fatal(err)
		}
		found := line.FindSubmatch(text)
		if found == nil {
			t.Fatalf("no salt in\n%s", text)
		}
		salts[string(found[1])] = true
	}
	if len(salts) != 2 {
		t.Errorf("two clusters have the salt %v", salts)
	}
}
