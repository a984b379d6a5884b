package compile

import (
	"fmt"
	"go/format"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestConstantsAreCurrent compares the constants in Go with those of the compiler.
func TestConstantsAreCurrent(t *testing.T) {
	var packages map[string]map[string]string
	nixEval(t, "import ../../lib/constants.nix", &packages)
	for name, constants := range packages {
		text := "// Code generated from nix/lib/constants.nix by go test ./nix/operator/compile -run Constants -update. DO NOT EDIT.\n\n" +
			"package " + name + "\n\nconst (\n"
		for _, key := range slices.Sorted(maps.Keys(constants)) {
			text += fmt.Sprintf("%s%s = %q\n", strings.ToUpper(key[:1]), key[1:], constants[key])
		}
		want, err := format.Source([]byte(text + ")\n"))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("../../../internal", name, "constants.go")
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != string(want) {
			t.Errorf("%s is not what nix/lib/constants.nix says (%v): go test ./nix/operator/compile -run Constants -update", path, err)
		}
	}
}
