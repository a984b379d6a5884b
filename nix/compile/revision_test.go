package compile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// repository is one of git with a flake in it, committed, and files that git does not know.
func repository(t *testing.T, unknown ...string) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("{ outputs = _: { }; }"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("in/flake.nix")
	write("in/flake.lock")
	write("in/hosts/forge.nix")
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first"}} {
		if _, err := git(t.Context(), dir, args...); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range unknown {
		write("in/" + name)
	}
	return dir
}

// Of what git does not know, what belongs to the cluster or looks so has no effect.
func TestUnseen(t *testing.T) {
	want := []string{"ca.crt", "hosts/eu/web.json", "hosts/web.nix", "hosts/ww.yaml", "roles/#a.nix#", "users.json", "users/ann.nix.orig"}
	others := []string{"README.md", "docs/mkdocs.yaml", "hosts/_old.yaml", "hosts/.web.yaml", "_notes.json", "hosts/README.md"}
	dir := repository(t, slices.Concat(want, others)...)
	for _, from := range []string{"in", "in/hosts"} {
		if got := (Source{Flake: filepath.Join(dir, from)}).Unseen(t.Context()); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", from, got, want)
		}
	}
}

// From a folder in it, a flake is found as Nix finds it.
func TestSubfolder(t *testing.T) {
	dir := repository(t)
	src := Source{Flake: filepath.Join(dir, "in/hosts")}
	at, err := src.At(t.Context(), "HEAD")
	if err != nil || !strings.Contains(at.Flake, "dir=in&") {
		t.Errorf("at HEAD it is %s, %v", at.Flake, err)
	}
	if got, want := src.dir(), filepath.Join(dir, "in"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if above := (Source{Flake: dir}).dir(); above != dir {
		t.Errorf("without a flake it is %s", above)
	}
}
