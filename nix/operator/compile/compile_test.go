package compile

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/kit"
)

// flake returns a flake with the library beside it and the given output florete.
func flake(t *testing.T, output string) Source {
	t.Helper()
	dir := t.TempDir()
	if err := kit.CopyLibrary(filepath.Join(dir, "nix"), "../.."); err != nil {
		t.Fatal(err)
	}
	base := "import ./base.nix { key = name: \"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA\" + builtins.substring 8 42 ((import ./nix/lib/names.nix).sri name); }"
	text := "{ outputs = _: let inherit (import ./nix) mkCluster; base = " + base + "; in { florete = " + output + "; }; }"
	baseNix, err := os.ReadFile(filepath.Join(golden, "base.nix"))
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"flake.nix": []byte(text), "base.nix": baseNix} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Source{Flake: dir}
}

func TestCompile(t *testing.T) {
	src := flake(t, `{ one = mkCluster base; two = mkCluster (base // { name = "second"; }); }`)
	for _, c := range []struct {
		cluster string
		hosts   []string
		name    string
		got     int
		err     string
	}{
		{cluster: "one", name: "golden", got: 2},
		{cluster: "two", hosts: []string{"beta"}, name: "second", got: 1},
		{cluster: "", err: "has the clusters one, two: choose one with --cluster"},
		{cluster: "three", err: `has no cluster "three", it has one, two`},
		{cluster: "one", hosts: []string{"beta", `a"${b`}, err: `cluster golden has no host "a\"${b", it has alpha, beta`},
	} {
		src.Cluster = c.cluster
		got, err := Compile(t.Context(), src, c.hosts...)
		if c.err != "" {
			if err == nil || !strings.HasSuffix(err.Error(), c.err) {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got.Name != c.name || len(got.Documents) != c.got {
			t.Errorf("%+v: got %s with %d hosts", c, got.Name, len(got.Documents))
		}
		if host := got.Documents["beta"][0].Manifest().Host; host != "beta" {
			t.Errorf("beta's manifest is of %q", host)
		}
		if alpha := got.Documents["alpha"]; alpha != nil && (len(alpha) != 2 || alpha[0].Envelope.Kind != document.DocManifest) {
			t.Errorf("alpha has %d documents, want its manifest, then its policy", len(alpha))
		}
	}
}

// TestFaultsAreNixsOwnWords checks that faults are printed exactly as Nix prints them, since people
// who run Nix directly see these.
func TestFaultsAreNixsOwnWords(t *testing.T) {
	src := flake(t, `{ one = mkCluster (base // { services.wiki = { host = "bta"; prot = 1; port = 2; }; }); }`)
	_, err := Compile(t.Context(), src)
	var faults *FaultsError
	if !errors.As(err, &faults) || len(faults.Faults) != 2 {
		t.Fatalf("got %v", err)
	}
	var thrown string
	probe := `c: (import ` + quote(filepath.Join(src.Flake, "nix/lib/fault.nix")) + `).report c.one.name c.one.faults`
	if err := eval(t.Context(), Source{src.Flake, "", []string{"--impure"}}, probe, &thrown); err != nil {
		t.Fatal(err)
	}
	if faults.Error() != thrown {
		t.Errorf("got  %s\nwant %s", faults, thrown)
	}
	for _, output := range []string{"manifests", "policies", "documents", `documents.beta`, `check "x86_64-linux"`, "directory.beta"} {
		var v any
		err := eval(t.Context(), src, "c: c.one."+output, &v)
		if err == nil || strings.Count(err.Error(), " FL0") != 2 {
			t.Errorf("%s: want both faults, got %v", output, err)
		}
	}
}

func TestSerialAndRevComeFromTheFlake(t *testing.T) {
	src := flake(t, `{
		dirty = mkCluster (removeAttrs base [ "serial" "rev" ] // { self = { lastModified = 7; dirtyRev = "abc-dirty"; }; });
		clean = mkCluster (removeAttrs base [ "serial" "rev" ] // { self = { lastModified = 7; rev = "abc"; }; });
		bare = mkCluster (removeAttrs base [ "serial" "rev" ]);
	}`)
	for cluster, want := range map[string]document.Envelope{
		"dirty": {Serial: 7, Rev: "abc-dirty"},
		"clean": {Serial: 7, Rev: "abc"},
		"bare":  {},
	} {
		src.Cluster = cluster
		c, err := Compile(t.Context(), src, "beta")
		if err != nil {
			t.Fatal(err)
		}
		if e := c.Documents["beta"][0].Envelope; e.Serial != want.Serial || e.Rev != want.Rev {
			t.Errorf("%s: got serial %d, rev %q", cluster, e.Serial, e.Rev)
		}
	}
}

// TestDirectory checks that the directory in the store holds the documents themselves. It reads
// them with Nix, since a store may be elsewhere than its paths say.
func TestDirectory(t *testing.T) {
	src := flake(t, `{ one = mkCluster base; }`)
	c, err := Compile(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	for host, documents := range c.Documents {
		var built []struct{ Outputs struct{ Out string } }
		out := runNix(t, "build", "--no-link", "--json", "--option", "build-users-group", "", "--option", "substituters", "",
			src.Flake+"#florete.one.directory."+host)
		if err := json.Unmarshal(out, &built); err != nil {
			t.Fatal(err)
		}
		for _, want := range documents {
			base := built[0].Outputs.Out + "/documents/" + want.Envelope.Kind
			got, err := document.Open(runNix(t, "store", "cat", base+".envelope.json"), runNix(t, "store", "cat", base+".json"), "")
			if err != nil {
				t.Fatal(err)
			}
			if got.Envelope != want.Envelope {
				t.Errorf("%s: got %+v, want %+v", host, got.Envelope, want.Envelope)
			}
		}
	}
}

// runNix returns the output of a command of Nix.
func runNix(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "nix", append([]string{"--extra-experimental-features", "nix-command flakes"}, args...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err, stderr.String())
	}
	return out
}

// TestExplain checks that lines of Nix's messages that do not help the reader are left out.
func TestExplain(t *testing.T) {
	said := `warning: the group 'nixbld' specified in 'build-users-group' does not exist
warning: Git tree '/c' is dirty
warning: not writing modified lock file of flake 'git+file:///c':
• Added input 'florete':
    'path:/f?lastModified=0' (1970-01-01)
error: undefined variable 'x'
       at /c/users.nix:1:1
(use '--show-trace' to show detailed location information)
`
	want := "undefined variable 'x'\n       at /c/users.nix:1:1"
	if got := explain(errors.New("exit status 1"), said).Error(); got != want {
		t.Errorf("got %q", got)
	}
	newer := `error:
       … in the right operand of the update (//) operator
         at «string»:15:23:
           14| in

       (stack trace truncated; use '--show-trace' to show the full, detailed trace)

       error: undefined variable 'x'
       at /c/users.nix:1:1:
            1| { alice.roles = [ x ]; }
`
	want = "undefined variable 'x'\nat /c/users.nix:1:1:\n     1| { alice.roles = [ x ]; }"
	if got := explain(errors.New("exit status 1"), newer).Error(); got != want {
		t.Errorf("got %q", got)
	}
	// Of git Nix has its exit code alone.
	git := "warning: Git tree '/c' is dirty\nfatal: unsafe repository ('/c' is owned by someone else)\nTo add an exception for this directory, call:\n\n\tgit config --global --add safe.directory /c\nerror: program 'git' failed with exit code 128\n(use '--show-trace' to show detailed location information)\n"
	want = "git: unsafe repository ('/c' is owned by someone else)\nTo add an exception for this directory, call:\n\n\tgit config --global --add safe.directory /c"
	if got := explain(errors.New("exit status 1"), git).Error(); got != want {
		t.Errorf("got %q", got)
	}
	if got := explain(errors.New("signal: killed"), "").Error(); got != "signal: killed" {
		t.Errorf("got %q", got)
	}
}

func TestNixIsMissing(t *testing.T) {
	t.Setenv("PATH", "")
	_, err := Compile(t.Context(), Source{})
	if err == nil || !strings.Contains(err.Error(), `no program "nix" in PATH: install it`) {
		t.Error(err)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Compile(ctx, Source{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestFlakeForACertificate checks the error if the flake's directory is given for a certificate:
// Nix does not list the files in it.
func TestFlakeForACertificate(t *testing.T) {
	src := flake(t, `{ one = mkCluster (base // { trust = base.trust // { roots = [ ./. ]; }; users.ann.roles = [ "reder" ]; }); }`)
	var faults *FaultsError
	_, err := ReadTopology(t.Context(), src)
	if !errors.As(err, &faults) || len(faults.Faults) != 2 || faults.Faults[0].ID != "FL002" || faults.Faults[0].Place != "trust.roots[0]" {
		t.Errorf("got %v", err)
	}
}
