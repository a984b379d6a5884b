package docs_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"testing"

	docpages "github.com/florete/florete/tests/docs/pages"
)

// TestPictures checks that the picture of the example cluster is the one that florctl graph draws
// now.
func TestPictures(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it compiles florctl")
	}
	root := docpages.Root(t)
	drawn := filepath.Join(t.TempDir(), "cluster.svg")
	cmd := exec.Command("go", "run", "./nix/cmd/florctl", "graph", "tests/cluster", "--override-input", "florete="+root, "--out", drawn)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !bytes.Equal([]byte(read(t, drawn)), []byte(read(t, root, "docs/pictures/cluster.svg"))) {
		t.Error("docs/pictures/cluster.svg is not what florctl graph draws: docs/pictures/make cluster")
	}
}
