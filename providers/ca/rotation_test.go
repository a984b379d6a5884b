package ca_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/florete/florete/providers/ca"
)

// prepared is a directory with a root and the next one.
func prepared(t *testing.T) (dir ca.Dir, active, next []byte) {
	t.Helper()
	dir = ca.Dir(t.TempDir())
	root, _ := authorities(t)
	if err := ca.SaveKey(dir.Path("ca.key"), root.Key); err != nil {
		t.Fatal(err)
	}
	if err := ca.Save(dir.Path("ca.crt"), ca.EncodeCertificates(root.Certificate)); err != nil {
		t.Fatal(err)
	}
	if r, err := dir.Read(); err != nil || r.Stage != ca.Steady || r.Next != nil || r.Former != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	prepare(t, dir)
	active, err := os.ReadFile(dir.Path("ca.crt"))
	if err == nil {
		next, err = os.ReadFile(dir.Path("next.crt"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir, active, next
}

func prepare(t *testing.T, dir ca.Dir) {
	t.Helper()
	next, err := ca.NewRoot("demo.flor", now)
	if err == nil {
		err = ca.SaveKey(dir.Path("next.key"), next.Key)
	}
	if err == nil {
		err = dir.Prepare(next.Certificate)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestActivateInterrupted checks that an interrupted activation of a new root can be completed by
// another one. Until then, the new root is still listed as the next root.
func TestActivateInterrupted(t *testing.T) {
	moves := [][2]string{{"ca.key", "old.key"}, {"ca.crt", "old.crt"}, {"next.key", "ca.key"}, {"next.crt", "ca.crt"}}
	for done := range len(moves) {
		dir, active, next := prepared(t)
		for _, m := range moves[:done] {
			if err := os.Rename(dir.Path(m[0]), dir.Path(m[1])); err != nil {
				t.Fatal(err)
			}
		}
		r, err := dir.Read()
		if err != nil || r.Stage != ca.Prepared || r.Former != nil ||
			string(ca.EncodeCertificates(r.Active)) != string(active) || string(ca.EncodeCertificates(r.Next)) != string(next) {
			t.Fatalf("after %d moves: %+v, %v", done, r, err)
		}
		if err := dir.Activate(); err != nil {
			t.Fatalf("after %d moves: %v", done, err)
		}
		if r, err = dir.Read(); err != nil || r.Stage != ca.Activated || string(ca.EncodeCertificates(r.Former)) != string(active) {
			t.Fatalf("after %d moves: %+v, %v", done, r, err)
		}
		for name, want := range map[string][]byte{"ca": next, "old": active} {
			a, err := ca.Load(dir.Path(name+".crt"), dir.Path(name+".key"))
			if err != nil || string(ca.EncodeCertificates(a.Certificate)) != string(want) {
				t.Errorf("after %d moves: %s: %v", done, name, err)
			}
		}
		if got := list(t, dir); !slices.Equal(got, []string{"ca.crt", "ca.key", "old.crt", "old.key"}) {
			t.Errorf("after %d moves: %v", done, got)
		}
	}
}

// TestRetire removes the key first: with the certificate alone it goes on.
func TestRetire(t *testing.T) {
	dir, _, next := prepared(t)
	if err := dir.Activate(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(dir.Path("old.key")); err != nil {
		t.Fatal(err)
	}
	// What cannot be removed stands for an interruption.
	if err := os.MkdirAll(filepath.Join(dir.Path("old.key"), "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := dir.Retire(); err == nil {
		t.Fatal("a directory in the key's place was removed")
	}
	if err := os.RemoveAll(dir.Path("old.key")); err != nil {
		t.Fatal(err)
	}
	if r, err := dir.Read(); err != nil || r.Stage != ca.Activated {
		t.Fatalf("%+v, %v", r, err)
	}
	if err := dir.Retire(); err != nil {
		t.Fatal(err)
	}
	r, err := dir.Read()
	if err != nil || r.Stage != ca.Steady || string(ca.EncodeCertificates(r.Active)) != string(next) {
		t.Errorf("%+v, %v", r, err)
	}
	if got := list(t, dir); !slices.Equal(got, []string{"ca.crt", "ca.key"}) {
		t.Error(got)
	}
}

// TestPrepareInterrupted checks that a key without a certificate is ignored, and is generated again
// by the next preparation.
func TestPrepareInterrupted(t *testing.T) {
	dir, _, _ := prepared(t)
	if err := os.Remove(dir.Path("next.crt")); err != nil {
		t.Fatal(err)
	}
	if r, err := dir.Read(); err != nil || r.Stage != ca.Steady {
		t.Fatalf("%+v, %v", r, err)
	}
	prepare(t, dir)
	if _, err := ca.Load(dir.Path("next.crt"), dir.Path("next.key")); err != nil {
		t.Error(err)
	}
	if _, err := ca.Dir(t.TempDir()).Read(); err == nil || !strings.Contains(err.Error(), "no ca.crt in it: name the directory that florctl ca init made") {
		t.Error(err)
	}
}

func list(t *testing.T, dir ca.Dir) (names []string) {
	t.Helper()
	all, err := os.ReadDir(filepath.Clean(string(dir)))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}
