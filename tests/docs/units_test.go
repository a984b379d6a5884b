package docs_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	unit = regexp.MustCompile(`\$\{unit "([\w-]+\.(?:service|socket|path|target|timer))"\}`)
	path = regexp.MustCompile(`filepath\.Join\(string\(l\), ((?:"[\w.-]+"(?:, )?)+)\)`)
)

// TestUnits compares the page of units with those that nix/units defines, and the page of files with
// those of a host's state directory.
func TestUnits(t *testing.T) {
	units, files := read(t, repo, "docs/reference/units.md"), read(t, repo, "docs/reference/files.md")
	sources, err := filepath.Glob(filepath.Join(repo, "nix/units/*.nix"))
	if err != nil {
		t.Fatal(err)
	}
	defined := 0
	for _, source := range sources {
		for _, m := range unit.FindAllStringSubmatch(read(t, source), -1) {
			defined++
			if !strings.Contains(units, "`florete-"+m[1]+"`") {
				t.Errorf("%s defines florete-%s, want it in docs/reference/units.md", filepath.Base(source), m[1])
			}
		}
	}
	sources, err = filepath.Glob(filepath.Join(repo, "internal/hostdir/*.go"))
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, source := range sources {
		for _, m := range path.FindAllStringSubmatch(read(t, source), -1) {
			parts := strings.Split(strings.ReplaceAll(m[1], `"`, ""), ", ")
			named++
			if !strings.Contains(files, parts[len(parts)-1]) {
				t.Errorf("%s names %s, want it in docs/reference/files.md", filepath.Base(source), strings.Join(parts, "/"))
			}
		}
	}
	if defined < 15 || named < 12 {
		t.Errorf("found %d units in nix/units and %d files in internal/hostdir, want more: correct the patterns", defined, named)
	}
}
