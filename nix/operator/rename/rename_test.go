package rename_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/plan"
	"github.com/florete/florete/nix/operator/rename"
	"github.com/florete/florete/tests/kit"
)

var update = flag.Bool("update", false, "write the expected files")

// flake writes the files of a case and of testdata/*.nix to a directory, which is a git work tree if
// isGit is set. It returns the directory, and the source of the flake in it.
func flake(t *testing.T, name string, isGit bool) (string, compile.Source) {
	t.Helper()
	if testing.Short() {
		t.Skip("left out by -short: it evaluates flakes")
	}
	t.Setenv("NIX_CONFIG", "experimental-features = nix-command flakes\n"+os.Getenv("NIX_CONFIG"))
	dir, lib := t.TempDir(), t.TempDir()
	if err := kit.CopyLibrary(filepath.Join(lib, "nix"), "../.."); err != nil {
		t.Fatal(err)
	}
	write(t, lib, "flake.nix", "{ outputs = _: { lib = import ./nix; }; }")
	archive, err := txtar.ParseFile(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	src := compile.Source{}
	for _, f := range archive.Files {
		write(t, dir, f.Name, strings.ReplaceAll(string(f.Data), "FLORETE", "path:"+lib))
		if filepath.Base(f.Name) == "flake.nix" {
			src.Flake = filepath.Dir(filepath.Join(dir, f.Name))
		}
	}
	for _, shared := range []string{"base.nix", "others.nix"} {
		text, err := os.ReadFile(filepath.Join("testdata", shared))
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, shared, string(text))
	}
	if isGit {
		git(t, dir, "init", "--quiet")
		git(t, dir, "add", "--all")
	}
	return dir, src
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return string(out)
}

func read(t *testing.T, src compile.Source) compile.Snapshot {
	t.Helper()
	s, err := compile.Read(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// keeps checks that a change of the cluster loses nothing, and that service docs took the place of
// service wiki.
func keeps(t *testing.T, before, after compile.Snapshot) {
	t.Helper()
	p, err := plan.Compare(before, after)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range p.Losses {
		t.Errorf("%s %s", l.What, l.Then)
	}
	if _, there := after.Topology.Services["wiki"]; there || len(after.Topology.Services) != len(before.Topology.Services) {
		t.Errorf("the services are %v, formerly %v", after.Topology.Services, before.Topology.Services)
	}
}

// expect compares a text with a file in testdata.
func expect(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		write(t, "testdata", name, got)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s", path, got)
	}
}

// TestService renames a service that is written in several ways. The output contains the difference
// of the files.
func TestService(t *testing.T) {
	for _, name := range []string{"nested", "dotted", "folder"} {
		t.Run(name, func(t *testing.T) {
			dir, src := flake(t, name, true)
			before := read(t, src)
			var dry, out strings.Builder
			options := rename.Options{Dir: src.Flake, Old: "wiki", New: "docs", DryRun: true, Out: &dry}
			if err := rename.Service(t.Context(), src, options); err != nil {
				t.Fatal(err)
			}
			if changed := git(t, dir, "diff", "--stat"); changed != "" {
				t.Errorf("--dry-run changed %s", changed)
			}
			options.DryRun, options.Out = false, &out
			if err := rename.Service(t.Context(), src, options); err != nil {
				t.Fatalf("%v\n%s", err, out.String())
			}
			expect(t, name+".out", out.String())
			if said, _, _ := strings.Cut(dry.String(), "\nThis would"); said == "" || !strings.HasPrefix(out.String(), said) {
				t.Errorf("--dry-run shows another difference:\n%s", dry.String())
			}
			keeps(t, before, read(t, src))
		})
	}
}

// TestWithoutGit renames a service in a directory that git does not know.
func TestWithoutGit(t *testing.T) {
	_, src := flake(t, "nested", false)
	before := read(t, src)
	if err := rename.Service(t.Context(), src, rename.Options{Dir: src.Flake, Old: "wiki", New: "docs", Out: new(strings.Builder)}); err != nil {
		t.Fatal(err)
	}
	keeps(t, before, read(t, src))
}

// TestByHand checks that a service whose definition cannot be changed stays as it is, and that the
// printed text, when it is written, loses nothing.
func TestByHand(t *testing.T) {
	dir, src := flake(t, "generated", true)
	before := read(t, src)
	var out strings.Builder
	err := rename.Service(t.Context(), src, rename.Options{Dir: src.Flake, Old: "wiki", New: "docs", Out: &out})
	if err == nil || !strings.HasPrefix(err.Error(), "nothing was changed: ") {
		t.Fatalf("got error %v", err)
	}
	if changed := git(t, dir, "diff", "--stat"); changed != "" {
		t.Errorf("changed %s", changed)
	}
	expect(t, "generated.out", out.String())
	first, lines, _ := strings.Cut(out.String(), "\n")
	if !strings.HasPrefix(first, "# Rename services.wiki to services.docs") {
		t.Errorf("got %s", first)
	}
	write(t, dir, "former.nix", string(mustRead(t, dir, "topology.nix")))
	write(t, dir, "topology.nix", `let
  former = import ./former.nix;
  inherit (builtins) isAttrs mapAttrs removeAttrs;
  merge = a: b: if isAttrs a && isAttrs b then a // mapAttrs (n: v: if a ? ${n} then merge a.${n} v else v) b else b;
in
merge (former // { services = removeAttrs former.services [ "wiki" ] // { docs = former.services.wiki; }; }) {
`+lines+"}\n")
	git(t, dir, "add", "--all")
	keeps(t, before, read(t, src))
}

func mustRead(t *testing.T, dir, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestRefused checks that wrong names, faults and files in the way change nothing.
func TestRefused(t *testing.T) {
	dir, src := flake(t, "folder", true)
	write(t, dir, "infra/cluster/services/used.nix", "{ }")
	for _, c := range [][3]string{
		{"wik", "docs", `cluster demo has no service "wik": did you mean "wiki"?`},
		{"wiki", "forge", "service forge already exists: choose another name"},
		{"wiki", "Docs", `service "Docs": want lower-case letters, digits and inner hyphens`},
		{"wiki", "florete-control", "nothing was changed, because the cluster would have faults: "},
		{"wiki", strings.Repeat("d", 51), "nothing was changed, because the cluster would have faults: "},
		{"wiki", "used", "infra/cluster/services/used.nix: already exists, and is not changed"},
	} {
		err := rename.Service(t.Context(), src, rename.Options{Dir: src.Flake, Old: c[0], New: c[1], Out: new(strings.Builder)})
		if err == nil || !strings.HasPrefix(err.Error(), c[2]) {
			t.Errorf("%s to %s: got error %v, want %s", c[0], c[1], err, c[2])
		}
		if changed := git(t, dir, "diff", "--stat"); changed != "" {
			t.Errorf("%s to %s: changed %s", c[0], c[1], changed)
		}
	}
}
