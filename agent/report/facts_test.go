package report

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/florete/florete/internal/hostreport"
)

func TestFind(t *testing.T) {
	declared := t.TempDir()
	for _, name := range []string{"printer", ".hidden"} {
		if err := os.WriteFile(filepath.Join(declared, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(declared, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	f := FindFacts(t.TempDir(), declared)
	if f.System == "" || f.Kernel == "" || f.Architecture == "" || f.CPUs < 1 || f.Booted.IsZero() || f.Booted.After(time.Now()) {
		t.Errorf("%+v", f)
	}
	for what, c := range map[string]struct{ total, free uint64 }{"memory": {f.Memory.Total, f.Memory.Free}, "disk": {f.Disk.Total, f.Disk.Free}} {
		if c.total < 1<<20 || c.free == 0 || c.free > c.total {
			t.Errorf("%s: %+v", what, c)
		}
	}
	if !slices.Contains(f.Capabilities, "printer") || slices.Contains(f.Capabilities, "folder") || slices.Contains(f.Capabilities, ".hidden") || !slices.IsSorted(f.Capabilities) {
		t.Errorf("capabilities %v", f.Capabilities)
	}
	none := FindFacts(t.TempDir(), filepath.Join(declared, "no-such"))
	if none.Capabilities == nil || slices.Contains(none.Capabilities, "printer") {
		t.Errorf("capabilities %v", none.Capabilities)
	}
}

// TestFoundCapabilities checks that a host looks for exactly those capabilities that the flake can
// require.
func TestFoundCapabilities(t *testing.T) {
	if got := slices.Sorted(maps.Keys(devices)); !slices.Equal(got, hostreport.FoundCapabilities) {
		t.Errorf("looks for %v, want %v", got, hostreport.FoundCapabilities)
	}
}

func TestSystem(t *testing.T) {
	for text, want := range map[string]string{
		"NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n": "Debian GNU/Linux 12 (bookworm)",
		"PRETTY_NAME='NixOS 26.05'\n":                              "NixOS 26.05",
		"NAME=x\n":                                                 "",
	} {
		path := filepath.Join(t.TempDir(), "os-release")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := system(path); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
