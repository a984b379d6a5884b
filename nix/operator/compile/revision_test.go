package compile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// repository returns a git repository with a committed flake and with files that git does not know.
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
		write("in/" + strings.TrimSuffix(name, "/") + map[bool]string{true: "/x.nix"}[strings.HasSuffix(name, "/")])
	}
	return dir
}

// TestUnseen checks that files that git does not know are reported if they seem to belong to the
// cluster.
func TestUnseen(t *testing.T) {
	want := []string{
		"ca.crt", "hosts/eu/web.json", "hosts/größe.nix", "hosts/web.nix", "hosts/ww.yaml", "ignored/services/a.json", "roles/#a.nix#", "services/docs",
		"services/docs.Json", "services/docs.nxi", "tenants/a.nix", "tenants/ignored/", "users.json", "users/ann.nix.orig",
	}
	others := []string{
		"README.md", "docs/mkdocs.yaml", "hosts/_old.yaml", "hosts/.web.yaml", "_notes.json", "hosts/README", "hosts/README.md", "hosts/web.png",
		"node_modules/a.json", "node_modules/roles/b.json", "ignored/package.json",
	}
	dir := repository(t, slices.Concat(want, others)...)
	ignore := "in/ignored/**/*.json\nnode_modules\nin/tenants/ignored\n"
	if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(ignore), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{"in", "in/hosts"} {
		if got := (Source{Flake: filepath.Join(dir, from)}).Unseen(t.Context()); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", from, got, want)
		}
	}
}

// TestFolders checks that git is asked about exactly the folders that the compiler reads.
func TestFolders(t *testing.T) {
	var want []string
	nixEval(t, `builtins.attrNames (import ../../language).entries ++ [ "hostGroups" "providers" ]`, &want)
	slices.Sort(want)
	if got := strings.Split(folders, "|"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestHook checks that florctl in a git hook reads the given flake and not the repository of the
// hook.
func TestHook(t *testing.T) {
	dir, other := repository(t, "hosts/new.nix"), repository(t)
	t.Setenv("GIT_DIR", filepath.Join(other, ".git"))
	t.Setenv("GIT_INDEX_FILE", filepath.Join(other, ".git/index"))
	src := Source{Flake: filepath.Join(dir, "in")}
	if got := src.Unseen(t.Context()); !slices.Equal(got, []string{"hosts/new.nix"}) {
		t.Errorf("got %q", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "in/flake.lock"), []byte(`{ "nodes": { "root": { } }, "root": "root", "version": 7 }`), 0o644); err != nil {
		t.Fatal(err)
	}
	if tree, err := ReadTree(t.Context(), src); err != nil || tree.Locked.Dir != "in" {
		t.Errorf("%+v, %v", tree, err)
	}
}

// TestDirectoryName checks that the error names a directory whose name Nix cannot handle.
func TestDirectoryName(t *testing.T) {
	for _, name := range []string{"a#b", "a?b"} {
		dir := filepath.Join(t.TempDir(), name)
		writeFiles(t, dir, map[string]string{"flake.nix": `{ outputs = _: { florete = { }; }; }`})
		_, err := Compile(t.Context(), Source{Flake: dir})
		if err == nil || !strings.Contains(err.Error(), "in its name: rename it") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	// Newer versions of Nix take these.
	for _, name := range []string{"a b", "ü", "a%b"} {
		dir := filepath.Join(t.TempDir(), name)
		writeFiles(t, dir, map[string]string{"flake.nix": `{ outputs = _: { florete = { }; }; }`})
		_, err := Compile(t.Context(), Source{Flake: dir})
		if err == nil || !strings.Contains(err.Error(), "in its name: rename it") && !strings.Contains(err.Error(), "has an empty output") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestSubmodules checks that files in a submodule are not part of the flake.
func TestSubmodules(t *testing.T) {
	dir, other := repository(t), repository(t)
	if _, err := git(t.Context(), dir, "-c", "protocol.file.allow=always", "submodule", "add", "-q", other, "in/hosts/eu"); err != nil {
		t.Fatal(err)
	}
	src := Source{Flake: filepath.Join(dir, "in")}
	if got := src.Submodules(t.Context()); !slices.Equal(got, []string{"hosts/eu"}) {
		t.Errorf("got %q", got)
	}
	src.Flake = "git+file://" + dir + "?dir=in&submodules=1"
	if got := src.Submodules(t.Context()); len(got) > 0 {
		t.Errorf("read with its submodules it has %q", got)
	}
}

// TestShallowClone checks that the error about a revision that a shallow clone lacks says how to
// fetch it.
func TestShallowClone(t *testing.T) {
	dir, clone := repository(t), filepath.Join(t.TempDir(), "clone")
	for range 2 {
		if _, err := git(t.Context(), dir, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "next"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := git(t.Context(), dir, "clone", "-q", "--depth=1", "file://"+dir, clone); err != nil {
		t.Fatal(err)
	}
	_, err := Source{Flake: filepath.Join(clone, "in")}.At(t.Context(), "HEAD~1")
	if err == nil || !strings.Contains(err.Error(), "git fetch --unshallow") {
		t.Errorf("got %v", err)
	}
}

// TestSubfolder checks that a flake is found from a folder in it, as Nix does.
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
