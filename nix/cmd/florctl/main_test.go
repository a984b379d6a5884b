package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/florete/florete/internal/agefile"
	"github.com/florete/florete/tests/kit"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"florctl": func() {
		agefile.WorkFactor = 10
		main()
	}})
}

// sshProgram stands for the network: the provider's host is the directory of the story.
const sshProgram = `#!/bin/sh
[ "$1" = root@drhorrible ] || { echo "$1: no such host"; exit 255; } >&2
shift
exec "$@" --settings "$WORK/provider.hujson"
`

// TestScripts runs the stories in testdata/script.
func TestScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	bin := t.TempDir()
	if err := kit.Programs(t.Context(), "../../..", bin); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(bin, "florctl")); err != nil { // this test is that
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "ssh"), []byte(sshProgram), 0o755); err != nil {
		t.Fatal(err)
	}
	scripts(t, "testdata/script", func(env *testscript.Env) error {
		env.Setenv("PATH", bin+":"+env.Getenv("PATH"))
		return nil
	})
}

// scripts runs the stories in a directory. more adds to their environment. $TOP is the repository.
func scripts(t *testing.T, dir string, more func(*testscript.Env) error) {
	t.Helper()
	top, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: dir,
		Condition: func(name string) (bool, error) {
			if name != "cgo" {
				return false, fmt.Errorf("condition %q: want cgo", name)
			}
			info, _ := debug.ReadBuildInfo()
			return slices.Contains(info.Settings, debug.BuildSetting{Key: "CGO_ENABLED", Value: "1"}), nil
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("TOP", top)
			for _, name := range []string{"NIX_CONFIG", "NIX_SSL_CERT_FILE"} {
				env.Setenv(name, os.Getenv(name))
			}
			cache, err := os.UserCacheDir() // of Go: with an empty one, a script compiles Go's runtime
			if err != nil {
				return err
			}
			env.Setenv("GOCACHE", cmp.Or(os.Getenv("GOCACHE"), filepath.Join(cache, "go-build")))
			env.Setenv("HOME", env.WorkDir)
			// The library alone, as a flake: what users have as an input.
			lib := filepath.Join(env.WorkDir, "florete")
			if err := kit.CopyLibrary(filepath.Join(lib, "nix"), filepath.Join(top, "nix")); err != nil {
				return err
			}
			env.Setenv("FLORETE", "florete=path:"+lib)
			if err := more(env); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(lib, "flake.nix"), []byte("{ outputs = _: { lib = import ./nix; }; }"), 0o644)
		},
	})
}
