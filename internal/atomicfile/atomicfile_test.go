package atomicfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/florete/florete/internal/atomicfile"
)

func TestTakesWhatWasLeft(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state.json")
	for _, text := range []string{"one", "two"} {
		if err := os.WriteFile(path+".new", []byte("half of it"), 0o400); err != nil {
			t.Fatal(err)
		}
		if err := atomicfile.File(path, []byte(text), 0o604); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if b, _ := os.ReadFile(path); err != nil || string(b) != text || info.Mode() != 0o604 {
			t.Errorf("%q, %v, want %q of mode 0604", b, info, text)
		}
	}
	if err := atomicfile.Symlink("there", path); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(path); err != nil || to != "there" {
		t.Errorf("link to %q, %v", to, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left over: %v", left)
	}
}

// TestFails checks that a replacement that fails leaves no file behind.
func TestFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "directory")
	if err := os.MkdirAll(filepath.Join(path, "full"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.File(path, nil, 0o644); err == nil {
		t.Error("a directory was replaced")
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left over: %v", left)
	}
}

// TestMakesDirectory checks that FileIn creates the missing directories above a file, and that it
// creates nothing if it fails.
func TestMakesDirectory(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "needs", "cert-node", "state.json")
	for _, text := range []string{"one", "two"} {
		if err := atomicfile.FileIn(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != text {
			t.Errorf("%q, %v", b, err)
		}
	}
	if err := atomicfile.FileIn(filepath.Join(path, "below", "a-file"), nil, 0o600); err == nil {
		t.Error("a file became a directory")
	}
}
