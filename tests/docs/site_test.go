package docs_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"testing"

	docpages "github.com/florete/florete/tests/docs/pages"
	"github.com/florete/florete/tests/kit"
)

// TestPictures checks that the picture of the example cluster is the one that florctl graph draws
// now.
func TestPictures(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it compiles florctl")
	}
	root, dir := docpages.Root(t), t.TempDir()
	if err := kit.Programs(t.Context(), root, dir, "florctl"); err != nil {
		t.Fatal(err)
	}
	drawn := filepath.Join(dir, "cluster.svg")
	cmd := exec.Command(filepath.Join(dir, "florctl"), "graph", "tests/cluster", "--override-input", "florete="+root, "--out", drawn)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !bytes.Equal([]byte(read(t, drawn)), []byte(read(t, root, "docs/pictures/cluster.svg"))) {
		t.Error("docs/pictures/cluster.svg is not what florctl graph draws: docs/pictures/make cluster")
	}
}
